# Lets what programs and libraries write to file descriptors 1 and 2 come before the end of the cell that ran them. A thread
# of ipykernel's moves it from a pipe to the cell's output, and nobody waits for that thread. The one of 6.17 also ends at
# the first byte that is no UTF-8, which may be half of a character; who writes on then waits for ever.
#
# What a program printed also comes before what is printed by the code that has waited for its end.
import codecs
import contextlib
import contextvars
import functools
import io
import os
import subprocess
import sys
import threading
from select import select

from ipykernel.iostream import OutStream

PIPE = 1 << 16  # bytes that it holds. No more are moved at a time, so that no writer keeps a cell from its end.


def redirect(stream, name, redirect=OutStream._setup_stream_redirects):
    stream._cellblock_pipe = threading.RLock()  # whoever has it finds written what was read
    stream._cellblock_decoder = codecs.getincrementaldecoder("utf-8")("replace")
    redirect(stream, name)
    stream._cellblock_descriptor = getattr(sys, f"__{name}__").fileno()
    stream._cellblock_end = os.dup(stream._cellblock_descriptor)
    redirected.append(stream)
    if name == "stdout":
        pipe = os.fstat(1)
        os.environ["KERNEL_OUTPUT"] = f"{pipe.st_dev}:{pipe.st_ino}"  # by which a Python that a cell starts knows whom it prints to
        os.environ.setdefault("PYTHONUNBUFFERED", "1")  # the host's own would write when it has 8 KB, or ends


def watch(stream):
    while select([stream._fid], [], []) and stream._should_watch:
        empty_pipe(stream)


def empty_pipe(stream):
    if not getattr(stream, "_should_watch", False):
        return
    with stream._cellblock_pipe:
        if select([stream._fid], [], [], 0)[0]:
            data = os.read(stream._fid, PIPE)
            text = stream._cellblock_decoder.decode(data)
            contextvars.Context().run(stream.write, text)  # as output of the cell that runs, whoever's thread this is
            with contextlib.suppress(OSError):
                os.write(stream._original_stdstream_copy, data)


def flush_with_pipe(stream, flush=OutStream.flush):
    if stream._is_master_process():
        empty_pipe(stream)
    flush(stream)


def stay_open(stream):
    # Who closes what a cell prints to, as "with sys.stdout:" does, ends a program's output, and here the session's: and ipykernel waits
    # for ever for the thread that watches the pipe.
    stream.flush()


class Bytes(io.BufferedIOBase):
    # What sys.stdout.buffer is for programs, which scripts write bytes to, or wrap anew for the sake of an encoding. The text is UTF-8 here.
    def __init__(self, stream):
        self.stream, self.decoder = stream, codecs.getincrementaldecoder("utf-8")("backslashreplace")

    def writable(self):
        return True

    def write(self, data):
        data = memoryview(data)
        self.stream.write(self.decoder.decode(data))
        return data.nbytes

    def end(self):
        # Half of a character is no part of what the next cell prints.
        self.stream.write(self.decoder.decode(b"", True))

    def fileno(self):
        return self.stream.fileno()

    def flush(self):
        self.stream.flush()

    close = flush


def reconfigure(stream, **_):  # the encoding, or when lines are sent: both are as whoever asks for it wants them
    stream.flush()


redirected = []  # streams


def emptying_pipes(wait):
    @functools.wraps(wait)
    def wait_and_empty(*args, **options):
        try:
            return wait(*args, **options)
        finally:
            for stream in redirected:
                if stream._is_master_process():
                    empty_pipe(stream)

    return wait_and_empty


def flush_what_is_open():
    # sys.stdout may be something else by now, and what Python itself opened writes into the pipe when it has 8 KB. Where it is the
    # notebook's own, ipykernel flushes it after this.
    for stream in redirected:
        try:
            os.fstat(stream._cellblock_descriptor)
        except OSError:  # it has been closed, and what programs print would be lost
            os.dup2(stream._cellblock_end, stream._cellblock_descriptor)
    for stream in sys.__stdout__, sys.__stderr__:
        with contextlib.suppress(Exception):  # it may be anything
            stream.flush()
    for stream in redirected:
        if getattr(sys, stream.name, None) is not stream:
            flush_other(stream)
        if "buffer" in vars(stream):
            stream.buffer.end()


def flush_other(own):
    # What stands for the notebook's own stream is flushed by ipykernel, too, which gets no further where that fails, and sends no reply.
    try:
        getattr(sys, own.name).flush()
    except Exception as err:
        setattr(sys, own.name, own)
        print(f"sys.{own.name} is the notebook's again: what it was cannot be flushed ({type(err).__name__}: {err})", file=redirected[-1])
    own.flush()


def flush_with_cells(events):
    events.register("post_run_cell", lambda *_: flush_what_is_open())


OutStream._setup_stream_redirects, OutStream._watch_pipe_fd, OutStream.flush = redirect, watch, flush_with_pipe
OutStream.close, OutStream.reconfigure, OutStream.buffer = stay_open, reconfigure, functools.cached_property(Bytes)
OutStream.buffer.__set_name__(OutStream, "buffer")
subprocess.Popen.wait, os.system = emptying_pipes(subprocess.Popen.wait), emptying_pipes(os.system)
