"""A Jupyter kernel for C#, whose cells Mono's compiler evaluates in one process (driver.cs): variables and types stay."""

import base64
import json
import os
import re
import shutil
import signal

from terminal import App, Failure, Run, TerminalKernel

VARIABLES = "application/vnd.cellblock.variables+json"
HERE = os.path.dirname(os.path.abspath(__file__))


class CSharpKernel(TerminalKernel):
    implementation = "cellblock-csharp"
    language = "C#"
    banner = "C# on Mono"
    language_info = {
        "name": "C#", "version": "7", "mimetype": "text/x-csharp", "file_extension": ".cs", "codemirror_mode": "text/x-csharp",
        "pygments_lexer": "csharp",
    }

    def launch(self):
        mono = shutil.which("mono") or "/usr/bin/mono"
        env = dict(os.environ, TERM="dumb", MONO_GC_PARAMS="nursery-size=4m")
        self.program.start([mono, os.path.join(HERE, "driver.exe")], env, input_fd=3)
        said = []
        run = self.send(Run(sink=said.append), "start", "")  # the first compilation takes a second, and is no cell's
        if run.answer is None:
            raise RuntimeError("C# did not start: " + b"".join(said).decode(errors="replace")[:2000])

    def give(self, run, code, command="run"):
        line = b" ".join([run.word, command.encode(), base64.b64encode(code.encode("utf-8", "replace"))])
        self.program.write(line + b"\n")

    def ask(self, command, code):
        """Has the program do something that is no cell, and returns its answer."""
        return self.answer(self.send(Run(sink=lambda data: None), command, code))

    def send(self, run, command, code):
        self.program.begin(run)
        try:
            if run.begun:
                self.give(run, code, command)
            self.wait(run)
        finally:
            self.program.end()
        return run

    def disturb(self):
        self.program.write(b"interrupt\n")
        self.program.force(signal.SIGTERM)

    def answer(self, run):
        if run.answer is None:
            how = self.program.how_it_ended(run)
            self.launch()
            raise Failure("ProcessEnded", f"the process of C# {how}: variables are lost, files are kept; a new one is there for the next cell")
        return json.loads(base64.b64decode(run.answer))

    def conclude(self, run):
        answer = self.answer(run)
        if "ename" in answer:
            raise Failure(answer["ename"], answer["evalue"], answer["traceback"])
        return {"text/plain": answer["value"]} if "value" in answer else None

    def evaluate(self, expression):
        if expression == "cellblock.variables":
            found = self.ask("variables", "")
            return {VARIABLES: json.dumps(found), "text/plain": f"{len(found['variables'])} variables"}
        answer = self.ask("run", expression)
        if "ename" in answer:
            raise Failure(answer["ename"], answer["evalue"], answer["traceback"])
        return {"text/plain": answer.get("value", "")}

    def do_complete(self, code, cursor_pos):
        before = code[:cursor_pos]
        word = re.search(r"\w*$", before)[0]
        matches = self.ask("complete", before).get("matches", [])
        return {
            "status": "ok", "matches": matches, "cursor_start": cursor_pos - len(word), "cursor_end": cursor_pos, "metadata": {},
        }


if __name__ == "__main__":
    App.main(CSharpKernel)
