"""A Jupyter kernel for Bash, whose cells one interactive shell runs: directory, variables and functions stay.

The shell reads its commands from a pipe. A cell is a file that it sources, with nothing on standard input; the next command
writes the mark with the status. An interactive shell survives interrupts, which end what it runs, loops of its own too.

A shell that ends (`exit`, or a command that fails under `set -e`) leaves what it knows to the next one. So does a kernel that is to
be stopped, in a file.
"""

import json
import os
import re
import shlex
import shutil
import subprocess
import tempfile

import known
from terminal import App, Failure, TerminalKernel

VARIABLES = "application/vnd.cellblock.variables+json"
MOST_VARIABLES = 500
MOST_TOLD = 20  # names of what is not saved, or not back
LONGEST = 60  # characters of such a name
MOST_ASKED = 20  # times that a cell may read what nobody answers

# Nobody sits at the prompt: a cell's own is taken back behind the cell, and before each prompt, which an interrupt leads to at once.
# A cell's set -x shows nothing of it, nor do its traps, and its set -e does not find the interrupt's status there.
QUIET = "{ __cellblock_quiet %s; } >/dev/null 2>&1"

# What a shell runs first. "read" says why it gets nothing where it reads what a cell has for its input, and ends what asks again and
# again. What else waits for a person, "more", is a program of ours (bin/more), so that programs that a cell starts have it, too.
#
# __cellblock_save writes what the shell knows to a file, behind its traps, which a function does not see: keys and declarations between
# NULs. A subshell does, with other options than the cells may have set.
SAVE = 'builtin trap -p >|%s; __cellblock_save %s "$@"'
OURS = {"__cellblock_quiet", "__cellblock_save", "read"}
SETUP = r"""
set +o history; history -c; unset HISTFILE; unset MAILCHECK; shopt -u checkwinsize; export -n PS1 PS2
__cellblock_save() {
  ( builtin trap - DEBUG ERR RETURN
    { builtin printf '\0options\0'; builtin shopt -p; builtin set +o
      builtin set +eu
      builtin printf '\0mask\0'; builtin umask -p
      builtin printf '\0limits\0'; builtin ulimit -S -a
      builtin printf '\0directory\0cd -- %q' "$PWD"
      builtin printf '\0directory stack\0dirs -c'
      for (( __cellblock_name = ${#DIRSTACK[@]} - 1; __cellblock_name > 0; __cellblock_name-- )); do
        builtin printf '; pushd -n -- %q' "${DIRSTACK[__cellblock_name]}"
      done
      builtin printf '\0arguments\0set --'; (( $# == 1 )) || builtin printf ' %q' "${@:2}"
      builtin mapfile -t __cellblock_names < <(builtin compgen -A function)
      for __cellblock_name in "${__cellblock_names[@]}"; do
        builtin printf '\0function %s\0' "$__cellblock_name"; builtin declare -pf -- "$__cellblock_name"
      done
      builtin mapfile -t __cellblock_names < <(builtin compgen -A variable)
      for __cellblock_name in "${__cellblock_names[@]}"; do
        builtin printf '\0variable %s\0' "$__cellblock_name"; builtin declare -p -- "$__cellblock_name"
      done
      for __cellblock_name in "${!BASH_ALIASES[@]}"; do
        builtin printf '\0alias %s\0' "$__cellblock_name"; builtin alias -- "$__cellblock_name"
      done
      for __cellblock_name in 3 4 5 6 7 8 9; do # from 10 on they are Bash's own
        [[ ! -e /dev/fd/$__cellblock_name ]] || builtin printf '\0descriptor %s\0' "$__cellblock_name"
      done
      builtin unset -v "${__cellblock_names[@]}"
      builtin printf '\0unassigned\0'; builtin declare -p
      builtin printf '\0end\0'
    } >>"$1"
  ) || builtin true
} 2>/dev/null
trap SAVE_STATE EXIT
__cellblock_quiet() {
  builtin unset -v PROMPT_COMMAND
  builtin declare -g __cellblock_asked=0 PS0= PS1= PS2= PROMPT_COMMAND=BEFORE_PROMPT || builtin true # one may be readonly
  builtin return "$1"
}
__cellblock_quiet 0
read() {
  builtin read "$@" || {
    local status=$? word
    for word; do [[ $word != -*u* ]] || return "$status"; done # of another descriptor
    [[ $status == 1 && /dev/stdin -ef /dev/null ]] || return "$status"
    echo 'bash: read: Bash cells cannot be answered: put the value into the code' >&2
    (( ++__cellblock_asked < MOST_ASKED )) || {
      echo 'bash: read: what asks again and again is ended' >&2
      builtin kill -INT "$BASHPID"
    }
    return "$status"
  }
}
"""


def saving(path):
    return SAVE % (shlex.quote(path), shlex.quote(path))


class BashKernel(TerminalKernel):
    implementation = "cellblock-bash"
    language = "bash"
    banner = "Bash"

    def __init__(self, **kwargs):
        self.dir = tempfile.mkdtemp(prefix=".bash-", dir=os.environ.get("TMPDIR") or "/tmp")
        self.state = os.path.join(self.dir, "state")
        self.bash = shutil.which("bash") or "/bin/bash"
        version = subprocess.run([self.bash, "-c", "echo $BASH_VERSION"], capture_output=True, text=True).stdout.strip()
        self.language_info = {
            "name": "bash", "version": version.partition("(")[0], "mimetype": "text/x-sh", "file_extension": ".sh",
            "codemirror_mode": "shell", "pygments_lexer": "bash",
        }
        super().__init__(**kwargs)
        self.saved = os.path.join(os.getcwd(), ".cellblock-variables")  # the next kernel starts there, too
        self.first = self.known()

    def launch(self):
        env = dict(os.environ, PS1="", PS2="", TERM="dumb", PAGER="cat", GIT_PAGER="cat", MANPAGER="cat", SYSTEMD_PAGER="")
        env["PATH"] = os.path.join(os.path.dirname(os.path.abspath(__file__)), "bin") + ":" + env.get("PATH", os.defpath)
        env.pop("PYTHONUNBUFFERED", None)
        self.program.start([self.bash, "--noprofile", "--norc", "--noediting", "-i"], env)
        setup = SETUP.replace("SAVE_STATE", shlex.quote(saving(self.state))).replace("BEFORE_PROMPT", shlex.quote(QUIET % 0))
        setup = setup.replace("MOST_ASKED", str(MOST_ASKED))
        self.program.write(setup.encode() + b"\n")

    def give(self, run, code):
        path = os.path.join(os.path.dirname(self.dir), f"cell-{self.execution_count}")
        if run.parent is None:
            path = os.path.join(self.dir, "code")
        if os.path.lexists(path):
            os.unlink(path)
        with open(path, "w", encoding="utf-8", errors="surrogateescape") as f:
            f.write(code + "\n")
        self.path = path
        quoted = shlex.quote(path)
        line = f"source {quoted} </dev/null; " + QUIET % '"$?"' + "\n"
        self.program.write(line.encode() + self.mark(run))

    def mark(self, run):
        return b"{ builtin printf '\\036%s:%d\\036' " + run.word + b' "$?" >/dev/tty; } >/dev/null 2>&1\n'

    def nudge(self, run):
        self.program.write(self.mark(run))

    def conclude(self, run):
        try:
            os.unlink(self.path)
        except OSError:
            pass
        if run.answer is None:
            return self.replace(run)
        status = int(run.answer)
        if status == 130 and run.interrupted is not None:
            raise Failure("KeyboardInterrupt", "")
        if status != 0:
            self.fail(status)
        return None

    def fail(self, status):
        signal = f" (ended by signal {status - 128})" if 128 < status < 128 + 65 else ""
        raise Failure("ExitStatus", f"{status}{signal}")

    def replace(self, run):
        """Starts another shell after the last has ended, with what that knew."""
        status, how = self.program.ended(), self.program.how_it_ended(run)
        self.launch()
        left = known.read(self.state)
        if left is None:
            lost = "variables, functions and directory are lost, files are kept"
            raise Failure("ShellEnded", f"the shell {how}: {lost}; a new one is there for the next cell")
        os.unlink(self.state)
        self.take_over({key: text for key, text in self.news(left).items() if known.kind(key) != "option"})  # `set -e` would end it again
        if not run.begun:
            raise Failure("ShellEnded", f"the shell {how}; a new one has its variables, functions and directory")
        if status != 0:
            self.fail(status)
        return None

    # What there is.

    def known(self):
        """What the shell knows now."""
        path = os.path.join(self.dir, "known")
        self.hidden(saving(path))
        found = known.read(path)
        if found is None:
            raise Failure("ShellEnded", "the shell was interrupted, or has ended")
        os.unlink(path)
        return found

    def news(self, found):
        """What of it cells have made so. What an image or the kernel brings, another one may bring otherwise."""
        gone = {key: known.unset(key) for key in self.first.keys() - found.keys() if known.kind(key) == "variable"}
        return gone | {key: text for key, text in found.items() if self.first.get(key) != text}

    def take_over(self, found):
        self.hidden(known.taken_over(found))

    def evaluate(self, expression):
        answer = {"cellblock.variables": self.variables, "cellblock.save": self.save, "cellblock.load": self.load}.get(expression)
        if answer is None:
            text = self.hidden(f"builtin printf '%s' {expression} >/dev/tty").decode(errors="backslashreplace")
            return {"text/plain": text}
        try:
            return {VARIABLES: json.dumps(answer()), "text/plain": "variables"}
        except Failure:
            raise
        except Exception as error:  # the disk is full, say, or somebody else has written the file: there must be an answer
            raise Failure(type(error).__name__, str(error)) from error

    def save(self):
        found = self.news(self.known())
        kept = {key: text for key, text in found.items() if known.kind(key) in known.KINDS}
        left = [known.label(key) for key in found.keys() - kept.keys()]
        if kept:
            self.write({"known": kept, "left": sorted(left)})
        return {"saved": len(kept)}

    def write(self, content):
        new = self.saved + ".new"
        try:
            with open(new, "w") as f:
                json.dump(content, f)
            os.replace(new, self.saved)
        finally:
            if os.path.lexists(new):
                os.unlink(new)

    def load(self):
        # The file goes before it is read: a shell that dies of it is not the first of many.
        with open(self.saved) as f:
            os.unlink(self.saved)
            content = json.load(f)
        self.take_over(content["known"])
        now = self.known()
        lost = [known.label(key) for key, text in content["known"].items() if not known.same(text, now.get(key, known.unset(key)))]
        left = [name[:LONGEST] for name in content["left"] + lost]
        return {"back": len(content["known"]) - len(lost), "left": left[:MOST_TOLD], "more": len(left[MOST_TOLD:]), "why": ""}

    def names(self):
        return self.hidden("compgen -A variable >/dev/tty").decode(errors="replace").split()

    def variables(self):
        names = [n for n in self.names() if f"variable {n}" not in self.first and not known.ITS_OWN.fullmatch(n) and n != "OLDPWD"]
        listed = names[-MOST_VARIABLES:]
        functions = self.hidden("declare -F >/dev/tty").decode(errors="replace").split("\n")
        entries = [self.describe(name) for name in listed]
        for line in functions:
            name = line.rpartition(" ")[2]
            if name and name not in OURS:
                entries.append({"name": name, "type": "function"})
        return {"variables": entries, "more": len(names) - len(listed)}

    def describe(self, name):
        text = self.hidden(f"declare -p {name} >/dev/tty 2>/dev/null", most=4096).decode(errors="backslashreplace").rstrip("\n")
        flags, _, value = text.removeprefix("declare -").partition(" ")
        value = value.partition("=")[2]
        kind = "array" if "a" in flags else "map" if "A" in flags else "integer" if "i" in flags else "string"
        entry = {"name": name, "type": kind + (", exported" if "x" in flags else ""), "preview": value[:200]}
        if kind in ("array", "map"):
            count = self.hidden("builtin printf '%%d' \"${#%s[@]}\" >/dev/tty" % name)
            if count.isdigit():
                entry["length"] = int(count)
        elif len(value) >= 2 and value[0] == value[-1] == '"':
            entry["preview"] = value[1:-1][:200]
        return entry

    def do_complete(self, code, cursor_pos):
        before = code[:cursor_pos]
        word = re.search(r"[^\s|&;()<>\"'`=]*$", before)[0]
        kinds = "-A variable -P '$'" if word.startswith("$") else "-A command -A file" if not re.search(r"\w\s+\S*$", before) else "-A file"
        stem = word.lstrip("$").lstrip("{")
        found = self.hidden(f"compgen {kinds} -- {shlex.quote(stem)} >/dev/tty").decode(errors="replace").split("\n")
        matches = sorted(set(filter(None, found)))[:500]
        return {"status": "ok", "matches": matches, "cursor_start": cursor_pos - len(word), "cursor_end": cursor_pos, "metadata": {}}

    def do_inspect(self, code, cursor_pos, detail_level=0, omit_sections=()):
        begin = re.search(r"[\w./+-]*$", code[:cursor_pos])[0]
        word = begin + re.match(r"[\w./+-]*", code[cursor_pos:])[0]
        quoted = shlex.quote(word)
        text = ""
        if word:
            text = self.hidden(f"{{ type {quoted} || declare -p {quoted}; }} >/dev/tty 2>/dev/null").decode(errors="replace").strip()
        return {"status": "ok", "found": bool(text), "data": {"text/plain": text} if text else {}, "metadata": {}}

    def do_is_complete(self, code):
        check = subprocess.run([self.bash, "-n"], input=code.encode(), capture_output=True)
        if check.returncode == 0 and not code.endswith("\\"):
            return {"status": "complete"}
        said = check.stderr.decode(errors="replace")
        if code.endswith("\\") or "unexpected end of file" in said or "unexpected EOF" in said:
            return {"status": "incomplete", "indent": ""}
        return {"status": "invalid"}

    def do_shutdown(self, restart):
        reply = super().do_shutdown(restart)
        shutil.rmtree(self.dir, ignore_errors=True)
        return reply


if __name__ == "__main__":
    App.main(BashKernel)
