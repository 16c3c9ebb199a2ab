"""What a shell of Bash's knows: by keys as "variable x" or "directory", the declaration by which another shell knows the same.

Declarations are Bash's own text, which it quotes so that reading them runs nothing, whatever is in a value.
"""

import re
import shlex

# In the order in which a shell takes them over: functions are read with the options by which they were, and before aliases, which they
# have in them already; what ends a shell or shows what it does comes last.
KINDS = ["directory", "mask", "limit", "behaviour", "variable", "arguments", "function", "alias", "option"]

# What Bash makes by itself, and what the kernel has in it.
ITS_OWN = re.compile(
    r"BASH(PID|OPTS|_(ALIASES|ARGC|ARGV0?|CMDS|COMMAND|EXECUTION_STRING|LINENO|MONOSECONDS|REMATCH|SOURCE|SUBSHELL|TRAPSIG|VERSINFO|VERSION))?"
    r"|COMP_(CWORD|KEY|LINE|POINT|TYPE|WORDBREAKS|WORDS)|DIRSTACK|EPOCH(REALTIME|SECONDS)|EUID|FUNCNAME|GROUPS|HISTCMD|HOSTTYPE|LINENO|MACHTYPE"
    r"|OPTERR|OSTYPE|PIPESTATUS|PPID|PWD|RANDOM|SECONDS|SHELLOPTS|SHLVL|SRANDOM|UID|_|__cellblock.*|PS[012]|PROMPT_COMMAND"
)

TRAP = re.compile(r"trap -- '(?:[^']|'\\'')*' (\S+)\n")
VARIABLE = re.compile(r"declare -(\S+) (\w+)(=.*)?\n", re.DOTALL)
LIMIT = re.compile(r"-([cdefilmnqrstuvx])\) (\w+)$", re.MULTILINE)  # those that can be set
UNASSIGNED = re.compile(r"^declare -\S+ (\w+)$", re.MULTILINE)
LATE = "ilucr"  # attributes that change what is assigned, or forbid it: of an integer's text Bash would compute the value


def read(path):
    """What __cellblock_save has written; None where it has not come to the end."""
    try:
        with open(path, encoding="utf-8", errors="surrogateescape", newline="") as f:
            traps, *fields = f.read().split("\0")
    except FileNotFoundError:
        return None
    if fields[-2:] != ["end", ""]:
        return None
    known = {f"trap {match[1]}": match[0] for match in TRAP.finditer(traps)}
    for key, text in zip(fields[:-2:2], fields[1:-2:2]):
        if key == "options":
            known.update(options(text))
        elif key == "limits":
            known.update({f"limit -{name}": f"ulimit -S -{name} {value}" for name, value in LIMIT.findall(text)})
        elif key == "unassigned":
            for match in UNASSIGNED.finditer(text):
                known.setdefault(f"variable {match[1]}", f"{match[0]}\n")
        else:
            known[key] = text
    return {key: text for key, text in known.items() if kind(key) != "variable" or not ITS_OWN.fullmatch(name_of(key))}


def options(text):
    """Each of its own: `shopt -s extglob`, `set -o errexit`."""
    for line in text.splitlines():
        command, _, name = line.split(" ")
        yield f"{'option' if command == 'set' else 'behaviour'} {name}", line


def taken_over(known):
    """What a shell runs to know the same."""
    keys = sorted((key for key in known if kind(key) in KINDS), key=lambda key: KINDS.index(kind(key)))
    return "".join(f"\\builtin eval {shlex.quote(late(known[key]))} || \\builtin true\n" for key in keys)


def late(declaration):
    """A declaration that assigns a value before it gives attributes that would change it."""
    match = VARIABLE.fullmatch(declaration)
    if match is None or match[3] is None or "n" in match[1] or not set(match[1]) & set(LATE):
        return declaration
    early = match[1].translate(str.maketrans("", "", LATE)) or "-"
    return f"declare -{early} {match[2]}{match[3]}; declare -{''.join(set(match[1]) & set(LATE))} {match[2]}"


def same(one, other):
    """Tells whether two declarations are the same: of an associative array Bash tells the keys in any order."""
    return one == other or re.match("declare -[a-zA-Z]*A", one) is not None and sorted(one) == sorted(other)


def unset(key):
    """The declaration of a variable that is none any more."""
    return f"unset -v {name_of(key)}"


def kind(key):
    return key.partition(" ")[0]


def label(key):
    """What people read: "x (variable)"."""
    return f"{name_of(key)} ({kind(key)})" if name_of(key) else kind(key)


def name_of(key):
    return key.partition(" ")[2]
