# Keeps in order what code prints to stdout and stderr, and makes code that prints faster than its output is read wait for that.
#
# Each stream of ipykernel's gathers text by itself, so that a warning would be shown after what was printed long after it. Here all of it
# is in one queue, with the cell that it is of, and with the last of the other messages that come before it: a picture waits for the
# thread that sends, and a timer may have that thread send what was printed behind the picture first.
#
# Without the waiting the kernel's memory fills with what was printed, until that is thrown away, which loses the ends of cells
# too, or until the kernel is killed for it.
import contextlib
import os
import sys
import threading
from collections import deque

import zmq
from ipykernel.iostream import IOPubThread, OutStream
from ipykernel.kernelapp import IPKernelApp

QUEUE = 256  # messages that wait in the socket for who reads them; one more waits for room
AHEAD = 64  # messages that wait for the thread that sends
GATHERED = 1 << 17  # characters that are gathered before messages are made of them
MESSAGE = 1 << 20  # characters of a message: who reads is at work on one while the next is made
LINE = 1000  # texts of a forked process that are gathered until they are a line; more of them would be looked through too often
TURNS = 256  # messages that are made of them at most, unless more cells print: streams that take turns more often are gathered each
ROUNDS = 10  # times that one goes on with what was printed meanwhile; a hook that prints would have it go on for ever
PATIENCE = 10  # seconds that one waits; more would be for ever where the thread that sends wants a lock of who waits


def open_iopub(app, context, open_iopub=IPKernelApp.init_iopub):
    context.sockopts[zmq.SNDHWM] = QUEUE  # the socket has it from its first moment, or not at all
    open_iopub(app, context)
    del context.sockopts[zmq.SNDHWM]
    app.iopub_thread.socket.setsockopt(zmq.XPUB_NODROP, 1)
    survive_interrupts(app.iopub_thread.thread)


def survive_interrupts(thread):
    # Before Python 3.13 an error that comes while is_alive looks at the lock of a thread releases that lock, and the thread passes
    # for dead. Others would send for it then, while it sends, and what comes out of the socket is no message any more.
    if hasattr(thread, "_tstate_lock"):
        thread.is_alive = lambda: not thread._is_stopped


def sends_elsewhere(thread):
    return thread.thread.is_alive() and thread.thread.ident != threading.get_ident()


def wait_for(thread, work=None):
    done = threading.Event()

    def work_and_tell():
        try:
            if work:
                work()
        finally:
            done.set()

    thread.schedule(work_and_tell)
    done.wait(PATIENCE)


def send_in_turn(thread, *args, **kwargs):
    # The thread that sends may wait for ever for room in its own queue, and a forked process has no such thread.
    if thread.thread.ident == threading.get_ident() or printed.forked:
        thread._really_send(*args, **kwargs)
        return
    printed.messages.append([thread, args, kwargs])
    thread.schedule(printed.send_messages)
    if len(thread._events) > AHEAD and thread.thread.is_alive():
        wait_for(thread)


class Printed:
    # What was printed and not given to the socket yet. There is no lock that a signal's handler, a destructor or a fork could find
    # taken: writers only append, and only the thread that sends takes away.
    def __init__(self):
        self.texts = deque()  # each with its stream, the header of its cell's request, and the last message that waited then
        self.messages = deque()  # what else waits for the thread that sends; empty are those that wait no more
        self.gathered = 0  # characters, since somebody waited
        self.sending = set()  # threads that send: one, and others after its end
        self.again = False  # somebody wanted to send while that very thread did
        self.forked = False
        self.lines = {}  # what a forked process has printed of the line that it is at, by stream and thread
        os.register_at_fork(after_in_child=self.leave)

    def leave(self):
        self.texts.clear()  # they are the parent's
        self.messages.clear()
        self.sending.clear()
        self.lines.clear()
        if not self.forked and (queues := sys.modules.get("multiprocessing.queues")):
            queues.SimpleQueue.put = after_lines(queues.SimpleQueue.put)
        self.forked = True

    def last_message(self):
        try:
            return self.messages[-1]
        except IndexError:  # it was sent meanwhile
            return None

    def turns(self):  # takes all that there is, and joins what one cell printed to one stream
        turns = [(None, None, None, [])]
        for _ in range(len(self.texts)):
            try:
                stream, header, behind, text = self.texts.popleft()
            except IndexError:  # another thread took it, after the end of the one that sends
                break
            for turn in reversed(turns):
                if turn[0] is stream and turn[1] is header and (not behind or behind is turn[2]):
                    turn[3].append(text)
                    break
                if len(turns) <= TURNS:
                    turns.append((stream, header, behind, [text]))
                    break
            else:
                turns.append((stream, header, behind, [text]))
        return turns[1:]

    def send(self):
        me, failure = threading.get_ident(), None
        if me in self.sending:  # this is a destructor's, which the collector runs at any time: what it printed comes behind the rest
            self.again = True
            return
        try:
            self.sending.add(me)  # first, for who looks whether there is nothing left to send
            for _ in range(ROUNDS):
                self.again = False
                for turn in self.turns():
                    try:
                        self.send_turn(*turn)
                    except Exception as e:  # of a hook, perhaps; the other turns have nothing to do with it
                        failure = failure or e
                if not self.again:
                    break
        finally:
            self.sending.discard(me)
        if failure:
            raise failure

    def send_messages(self):  # all of them: an interrupt may have come before one's own call was scheduled
        for _ in range(len(self.messages)):
            self.send_message()

    def send_message(self):
        try:
            message = self.messages.popleft()
        except IndexError:  # it was sent before what was printed behind it
            return
        thread, args, kwargs = message
        message.clear()
        thread._really_send(*args, **kwargs)

    def send_turn(self, stream, header, behind, texts):
        try:
            while behind and self.messages:
                self.send_message()
        finally:
            text = "".join(texts)
            for at in range(0, len(text), MESSAGE):
                message = stream.session.msg("stream", {"name": stream.name, "text": text[at : at + MESSAGE]}, parent=header)
                for hook in getattr(stream, "_hooks", ()):
                    message = message and hook(message)
                if message and stream.pub_thread:
                    stream.session.send(stream.pub_thread, message, ident=stream.topic)


printed = Printed()


def send_what_was_printed(stream, flush=OutStream._flush):
    flush(stream)  # what else it does
    printed.send()


def pass_on(thread, message, pass_on=IOPubThread._handle_pipe_msg):  # of a forked process
    printed.send()  # what came before it
    pass_on(thread, message)


def write_whole_lines(stream, text, write=OutStream.write):
    # Of a forked process. Each text is sent at once, and print gives every word as one: those of several processes would be one line.
    line = printed.lines.setdefault((stream, threading.get_ident()), deque())
    line.append(text)
    long = len(line) > LINE
    if long or "\n" in text:
        whole = taken(line)
        end = len(whole) if long else whole.rfind("\n") + 1
        if whole[end:]:
            line.appendleft(whole[end:])
        if end:
            write(stream, whole[:end])
    return len(text)


def taken(line):  # by this thread alone, as another may flush
    texts = []
    with contextlib.suppress(IndexError):
        while True:
            texts.append(line.popleft())
    return "".join(texts)


def flush_lines(write=OutStream.write):
    for (stream, _), line in list(printed.lines.items()):
        if text := taken(line):
            write(stream, text)


def after_lines(put):
    # A pool's workers, which are forked, are ended as soon as it has all results.
    def put_after_lines(queue, result):
        flush_lines()
        put(queue, result)

    return put_after_lines


def flush_in_turn(stream):  # ipykernel's own complains to descriptor 2, which may be the pipe that its caller is to empty
    flush_lines()
    thread = stream.pub_thread
    if not thread or not sends_elsewhere(thread):
        stream._flush()
    elif printed.texts or printed.sending or stream.echo:
        wait_for(thread, stream._flush)


class Timer:
    # Has what was printed sent a moment later. ipykernel begins another one after each flush, and wakes the thread that sends to do so.
    over = False

    def __init__(self, stream):
        self.stream = stream

    def begin(self):
        thread = self.stream.pub_thread
        if thread.thread.is_alive():
            thread.io_loop.call_later(self.stream.flush_interval, self.end)
        else:  # this is a thread that prints at the process's end
            self.end()

    def end(self):
        self.over = True  # first: what is printed from now on may come too late for this one
        self.stream._flush()


def flush_soon(stream):
    timer = vars(stream).get("_cellblock_timer")
    if timer is None or timer.over or not stream.pub_thread.thread.is_alive():
        timer = Timer(stream)
        stream.pub_thread.schedule(timer.begin)
        stream._cellblock_timer = timer  # last: an interrupt may come at any time, and two timers do no harm


def write_in_turn(stream, text, write=OutStream.write):
    if stream.echo is not None or stream.pub_thread is None or not isinstance(text, str):
        return write(stream, text)
    if printed.forked:
        return write_whole_lines(stream, text)
    printed.texts.append((stream, stream.parent_header, printed.last_message() if printed.messages else None, text))
    flush_soon(stream)
    printed.gathered += len(text) + 1
    if printed.gathered > GATHERED:
        printed.gathered = 0
        flush_in_turn(stream)
    return len(text)


IPKernelApp.init_iopub = open_iopub
IOPubThread.send_multipart, IOPubThread._handle_pipe_msg = send_in_turn, pass_on
OutStream.write, OutStream.flush, OutStream._flush = write_in_turn, flush_in_turn, send_what_was_printed
