"""A Jupyter kernel whose code runs in another program on a pseudoterminal: a shell, an interpreter.

On a terminal programs write what they have line by line, so that output is seen while it comes, and one that is
interrupted is interrupted as its user would do it. The terminal passes every byte as it is: nothing is echoed, no line end
changed. What is written is read at all times, by a thread, and sent as the output of the cell that runs, or of the last one.

The program gets a cell by a pipe, never by the terminal. At its end it writes a mark to the terminal, behind all that the
cell has written: a byte, a word made up for this cell, what it has to say, a byte. See Program.marks.
"""

import codecs
import contextlib
import fcntl
import os
import re
import secrets
import select
import signal
import struct
import subprocess
import sys
import termios
import threading
import time
import traceback

import zmq

sys.modules["debugpy"] = None  # ipykernel loads it where it can: a quarter of the start and 12 MB, for nobody
from ipykernel.kernelapp import IPKernelApp
from ipykernel.kernelbase import Kernel

MARK = b"\x1e"  # begins and ends a mark
WORD = 16  # characters of a mark's word
LONGEST_MARK = 1 << 20

END_OF_INPUT = b"\x04"  # typed at a terminal
ENDS = 256  # questions that are answered so, until the next cell

CHUNK = 1 << 16  # bytes that go into one message at most
LULL = 0.004  # seconds that more output is waited for before a message goes
HURRY = 0.03  # seconds that a message waits at most

# How fast output is taken. A publisher throws messages away that its reader is too slow for; a writer can wait.
PACE = 32 << 20  # bytes a second
BURST = 16 << 20

# How often in turn, twice a second, a program is seen to wait for keys until it is told that its terminal is gone, and until it is killed.
HANG_UP_AT = 3
KILL_AT = 5
WORKS = 0.025  # seconds of a processor between two looks

# Seconds after an interrupt until the programs that ignored it are asked to end, and until they are killed.
TERM_AFTER = 2.0
KILL_AFTER = 3.5


class Run:
    """One piece of code that the program works on."""

    def __init__(self, parent=None, sink=None):
        self.word = secrets.token_hex(WORD // 2).encode()
        self.parent = parent  # the request, for its output
        self.sink = sink  # gets the output instead; None: it is sent
        self.answer = None  # the mark's text; None: the program has ended
        self.done = threading.Event()
        self.interrupted = None  # when
        self.begun = False  # the program was there to get the code

    def finish(self, answer):
        if not self.done.is_set():
            self.answer = answer
            self.done.set()


class Bucket:
    """Lets bytes pass at a pace."""

    def __init__(self, pace, burst):
        self.pace, self.burst, self.level, self.at = pace, burst, burst, time.monotonic()

    def take(self, count):
        now = time.monotonic()
        self.level = min(self.burst, self.level + (now - self.at) * self.pace) - count
        self.at = now
        if self.level < 0:
            time.sleep(-self.level / self.pace)


class Program:
    """A program on a terminal of its own, and its replacement when it ends."""

    def __init__(self, send):
        self.send = send  # takes text and the request that it belongs to
        self.master, self.slave = os.openpty()
        os.set_blocking(self.master, False)
        fcntl.ioctl(self.master, termios.TIOCPKT, struct.pack("i", 1))  # what is read tells when input was thrown away, too
        self.calm()
        self.process = None
        self.input = None  # the pipe by which it gets code
        self.run = None
        self.words = []  # of runs whose marks may still come
        self.written = 0  # bytes, to the terminal
        self.parent = None  # whose output comes while nothing runs
        self.lock, self.writing = threading.RLock(), threading.Lock()
        self.decoder = codecs.getincrementaldecoder("utf-8")("backslashreplace")
        threading.Thread(target=self.read, daemon=True).start()

    def calm(self):
        """Makes the terminal pass everything as it is, but for the keys that interrupt."""
        mode = termios.tcgetattr(self.slave)
        mode[0] = 0
        mode[1] = 0
        mode[2] = termios.CS8 | termios.CREAD | (mode[2] & termios.CBAUD if hasattr(termios, "CBAUD") else 0)
        mode[3] = termios.ISIG | termios.ICANON
        termios.tcsetattr(self.slave, termios.TCSANOW, mode)

    def end_input(self):
        """Lets whatever asks at the terminal, as for a password, find the end of its input: nobody sits there."""
        with contextlib.suppress(BlockingIOError):
            os.write(self.master, END_OF_INPUT * ENDS)

    def start(self, argv, env, input_fd=0):
        """Starts the program; it reads code from the descriptor input_fd, 0 or 3."""
        reader, writer = os.pipe()

        def own_terminal():
            fcntl.ioctl(1, termios.TIOCSCTTY, 1)
            os.tcsetpgrp(1, os.getpid())
            if input_fd:
                os.dup2(reader, input_fd)  # not inheritable under its own number
                os.set_inheritable(input_fd, True)
            signal.signal(signal.SIGINT, signal.SIG_DFL)
            signal.signal(signal.SIGTTOU, signal.SIG_DFL)

        signal.signal(signal.SIGTTOU, signal.SIG_IGN)  # inherited until the terminal is the child's
        try:
            process = subprocess.Popen(
                argv, env=env, stdin=subprocess.DEVNULL if input_fd else reader, stdout=self.slave, stderr=self.slave,
                start_new_session=True, preexec_fn=own_terminal, pass_fds=(input_fd,) if input_fd else (),
            )
        except BaseException:
            os.close(writer)
            raise
        finally:
            os.close(reader)
        with self.lock:
            if self.input is not None:
                os.close(self.input)
            self.process, self.input = process, writer
        threading.Thread(target=self.watch, args=(process,), daemon=True).start()

    def watch(self, process):
        """Waits for the program's end. What it has written by then is read before its run is over."""
        process.wait()
        with self.lock:
            run = self.run if self.process is process else None
        if run is None:
            return
        deadline = time.monotonic() + 2
        while not run.done.wait(0.03) and time.monotonic() < deadline and select.select([self.master], [], [], 0)[0]:
            pass
        run.done.wait(2 * HURRY)
        run.finish(None)

    def ended(self):
        """Tells how the program has ended: its status, negative for a signal; None while it runs."""
        return self.process.poll()

    def how_it_ended(self, run):
        """Says how the program has ended, by whose end a run was over."""
        status = self.process.poll()
        how = f"was killed by signal {-status}" if status < 0 else f"ended with status {status}"
        return how if run.begun else how + " before this cell, which did not run"

    def begin(self, run):
        with self.lock:
            self.run = run
            self.words = [*self.words[-7:], run.word]
            run.begun = self.process.poll() is None
            if run.sink is None:
                self.parent = run.parent
            if not run.begun:
                run.finish(None)
        self.calm()
        termios.tcflush(self.slave, termios.TCIFLUSH)  # the reader hears of it and ends the input anew

    def end(self):
        with self.lock:
            self.run = None

    def write(self, data):
        """Gives the program code. It may have ended: then its run is over, too."""
        with contextlib.suppress(BrokenPipeError), self.writing:
            while data:
                data = data[os.write(self.input, data):]

    # The reader.

    def read(self):
        pending, bucket = b"", Bucket(PACE, BURST)
        first = None  # when the oldest byte came that waits
        while True:
            wait = None if first is None else max(0, min(LULL, first + HURRY - time.monotonic()))
            ready = select.select([self.master], [], [], wait)[0]
            data = b""
            if ready:
                try:
                    data = os.read(self.master, CHUNK)
                except BlockingIOError:
                    continue
                except OSError:
                    return  # the kernel ends
                kind, data = data[0], data[1:]
                if kind & termios.TIOCPKT_FLUSHREAD:
                    self.end_input()
                if not data:
                    continue
                first = first or time.monotonic()
                self.written += len(data)
                pending += data
            if pending and (not ready or len(pending) >= CHUNK or MARK in data or time.monotonic() >= first + HURRY):
                bucket.take(len(pending))
                before = len(pending)
                try:
                    pending = self.marks(pending)
                except Exception:  # nothing may end the thread that everything is read by
                    traceback.print_exc()
                    pending = b""
                first = time.monotonic() if pending and len(pending) < before else None

    def marks(self, data):
        """Sends what was written, ends runs at their marks, and returns what may be the beginning of a mark."""
        while True:
            at = self.find(data)
            if at is None:
                break
            begin, stop, text, word = at
            self.say(data[:begin])
            data = data[stop:]
            with self.lock:
                run = self.run
            if run is not None and word == run.word and not run.done.is_set():
                self.say(b"", final=True)
                run.finish(text)
        keep = self.unfinished(data)
        self.say(data[:keep])
        return data[keep:]

    def find(self, data):
        """The first whole mark: where it begins and ends, its text and its word."""
        for word in self.words:
            found = re.search(re.escape(MARK + word) + b":([^\x1e]*)" + MARK, data, re.DOTALL)
            if found:
                return found.start(), found.end(), found[1], word
        return None

    def unfinished(self, data):
        """Where in data a mark begins whose end is still to come; its end if there is none."""
        at = data.rfind(MARK)
        if at < 0 or len(data) - at > LONGEST_MARK:
            return len(data)
        tail = data[at + 1 : at + 1 + WORD]
        return at if any(word.startswith(tail) for word in self.words) else len(data)

    def say(self, data, final=False):
        with self.lock:
            run, parent = self.run, self.parent
        if run is not None and run.sink is not None and not run.done.is_set():
            run.sink(data)
            return
        text = self.decoder.decode(data, final)
        if text and parent is not None:
            self.send(text, parent)

    # Signals.

    def interrupted(self):
        """Notes that what runs was interrupted, and returns whether something does run."""
        with self.lock:
            run = self.run
        if run is None or run.done.is_set():
            return False
        run.interrupted = run.interrupted or time.monotonic()
        return True

    @staticmethod
    def processes():
        """All processes there are: what proc(5) has of each in its stat, from the state on, by its id."""
        found = {}
        for name in filter(str.isdigit, os.listdir("/proc")):
            with contextlib.suppress(OSError), open(f"/proc/{name}/stat", "rb") as f:
                found[int(name)] = f.read().rpartition(b")")[2].split()
        return {pid: fields for pid, fields in found.items() if len(fields) > 14}

    def foreground(self):
        """The processes that have the terminal, but for the program itself."""
        try:
            group = os.tcgetpgrp(self.master)
        except OSError:
            return []
        return [pid for pid, fields in self.processes().items() if int(fields[2]) == group and pid != self.process.pid]

    def worked(self):
        """Seconds of a processor that the program has used, and what it has started."""
        processes = self.processes()
        ours, new = set(), {self.process.pid}
        while new:
            ours |= new
            new = {pid for pid, fields in processes.items() if int(fields[1]) in new} - ours
        return sum(int(ticks) for pid in ours & processes.keys() for ticks in processes[pid][11:15]) / os.sysconf("SC_CLK_TCK")

    def reads_lines(self):
        """Tells whether what asks at the terminal finds the end of its input: what takes single keys does not."""
        return bool(termios.tcgetattr(self.slave)[3] & termios.ICANON)

    def signal_foreground(self, number):
        with contextlib.suppress(OSError):
            os.killpg(os.tcgetpgrp(self.master), number)

    def force(self, number):
        """Sends a signal to what runs in the foreground and not to the program, which has the state."""
        send_all(self.foreground(), number)

    def stop(self):
        process = self.process
        if process is None or process.poll() is not None:
            return
        for number in (signal.SIGHUP, signal.SIGKILL):
            with contextlib.suppress(OSError):
                os.killpg(process.pid, number)
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(0.3)
                return


class KeyReaders:
    """Programs that wait for keys, as an editor does, and would wait for ever. One that works, as ffmpeg, or goes on to draw, as a
    progress bar, only hears of keys."""

    def __init__(self, program, tell):
        self.program = program
        self.tell = tell  # is given text
        self.looks = 0  # in turn at which somebody waited
        self.seen = None  # seconds worked and bytes written until the last of them
        self.hung_up = []  # who was told that the terminal is gone

    def look(self):
        """Ends programs that were seen to wait often enough, in this look and those that come, and says so."""
        self.looks = self.looks + 1 if self.wait() else 0
        if self.hung_up:
            self.go_on_ending()
        elif self.looks >= HANG_UP_AT:
            self.hang_up()

    def hang_up(self):
        self.hung_up = self.program.foreground()
        if self.hung_up:
            self.tell(f"\n{name_of(self.hung_up[-1])} is ended: it waits for keys, and nobody can press any here\n")
        send_all(self.hung_up, signal.SIGHUP)

    def wait(self):
        """Tells whether the terminal is read by keys, and nothing has worked or written since the last look."""
        before, self.seen = self.seen, None if self.program.reads_lines() else (self.program.worked(), self.program.written)
        return None not in (before, self.seen) and abs(self.seen[0] - before[0]) < WORKS and self.seen[1] == before[1]

    def go_on_ending(self):
        left = set(self.hung_up) & set(self.program.foreground())
        if not left:  # the terminal may be as they had it, and what comes next must not be taken for them
            self.program.calm()
            self.hung_up, self.looks = [], 0
        elif self.looks >= KILL_AT:
            send_all(left, signal.SIGKILL)


def name_of(pid):
    with contextlib.suppress(OSError), open(f"/proc/{pid}/comm", encoding="utf-8", errors="replace") as f:
        return f.read().strip()
    return "the program"


def send_all(pids, number):
    for pid in pids:
        with contextlib.suppress(OSError):
            os.kill(pid, number)


async def nothing():
    pass


class Failure(Exception):
    """How a cell failed: what an error message says."""

    def __init__(self, name, value, lines=()):
        super().__init__(value)
        self.content = {"ename": name, "evalue": value, "traceback": [*lines, f"{name}: {value}" if value else name]}


class TerminalKernel(Kernel):
    """What kernels on a terminal have in common. Subclasses say how the program is started and spoken to."""

    implementation_version = "1"

    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self._execute_sleep = 0  # before each reply; ours waits for the end of both channels
        self._flush_control_queue = nothing  # control has a thread of its own
        self.program = Program(self.publish)
        self.launch()

    # For subclasses.

    def launch(self):
        """Starts the program."""
        raise NotImplementedError

    def give(self, run, code):
        """Gives the program code."""
        raise NotImplementedError

    def disturb(self):
        """Interrupts what runs."""
        self.program.signal_foreground(signal.SIGINT)

    def nudge(self, run):
        """Asks the program once more for a mark, after an interrupt that may have taken it."""

    def conclude(self, run):
        """Returns the data of the cell's value, or None, at the end of a cell; raises Failure."""
        raise NotImplementedError

    def evaluate(self, expression):
        """Returns the data of a user expression."""
        raise Failure("NotSupported", "there are no expressions")

    # Execution.

    def publish(self, text, parent):
        self.session.send(self.iopub_socket, "stream", {"name": "stdout", "text": text}, parent=parent, ident=self._topic("stream"))

    def perform(self, run, code):
        """Runs code in the program to its end."""
        self.program.begin(run)
        try:
            if run.begun:
                self.give(run, code)
            self.wait(run)
        finally:
            self.program.end()

    def wait(self, run):
        """Waits for the end of a run. One that was interrupted and goes on is ended with more and more force."""
        readers = KeyReaders(self.program, lambda text: run.sink is None and self.publish(text, run.parent))
        while not run.done.wait(0.5 if run.interrupted is None else 0.2):
            if run.interrupted is None:
                readers.look()
                continue
            passed = time.monotonic() - run.interrupted
            self.nudge(run)
            if passed > KILL_AFTER:
                self.program.force(signal.SIGKILL)
            elif passed > TERM_AFTER:
                self.program.force(signal.SIGTERM)

    def do_execute(self, code, silent, store_history=True, user_expressions=None, allow_stdin=False, **_):
        reply = {"status": "ok", "execution_count": self.execution_count, "payload": [], "user_expressions": {}}
        try:
            if code.strip():
                run = Run(parent=self.get_parent("shell"), sink=(lambda data: None) if silent else None)
                self.perform(run, code)
                value = self.conclude(run)
                if value and not silent:
                    content = {"execution_count": self.execution_count, "data": value, "metadata": {}}
                    self.send_response(self.iopub_socket, "execute_result", content)
        except Failure as failure:
            if not silent:
                self.send_response(self.iopub_socket, "error", failure.content)
            return {**reply, "status": "error", **failure.content}
        for name, expression in (user_expressions or {}).items():
            try:
                reply["user_expressions"][name] = {"status": "ok", "data": self.evaluate(expression), "metadata": {}}
            except Failure as failure:
                reply["user_expressions"][name] = {"status": "error", **failure.content}
        return reply

    def hidden(self, code, most=1 << 20):
        """Runs code that nobody sees and returns what it wrote."""
        parts = []
        run = Run(sink=lambda data: parts.append(data) if sum(map(len, parts)) < most else None)
        self.perform(run, code)
        return b"".join(parts)

    async def interrupt_request(self, stream, ident, parent):
        if self.program.interrupted():
            self.disturb()
        self.session.send(stream, "interrupt_reply", {"status": "ok"}, parent, ident=ident)

    def do_shutdown(self, restart):
        self.program.stop()
        return {"status": "ok", "restart": restart}


class App(IPKernelApp):
    """Starts a kernel. Its IOPub socket holds more messages before it throws any away than ZMQ's would."""

    def init_iopub(self, context):
        context.setsockopt(zmq.SNDHWM, 100_000)
        super().init_iopub(context)

    def init_signal(self):
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # interrupts are asked for by message

    def log_connection_info(self):
        pass  # it would pass for the last words of a dead kernel

    @classmethod
    def main(cls, kernel_class):
        cls.launch_instance(kernel_class=kernel_class)
