# Makes code that prints faster than its output is read wait for that. Without it the kernel's memory fills with what was
# printed, until that is thrown away, which loses the ends of cells too, or until the kernel is killed for it.
import threading

import zmq
from ipykernel.iostream import IOPubThread, OutStream
from ipykernel.kernelapp import IPKernelApp

QUEUE = 256  # messages that wait in the socket for who reads them; one more waits for room
AHEAD = 64  # messages that wait for the thread that sends
GATHERED = 1 << 17  # characters that a stream gathers before it makes a message of them
PATIENCE = 10  # seconds that one waits; more would be for ever where the thread that sends wants a lock of who waits


def open_iopub(app, context, open_iopub=IPKernelApp.init_iopub):
    context.sockopts[zmq.SNDHWM] = QUEUE  # the socket has it from its first moment, or not at all
    open_iopub(app, context)
    del context.sockopts[zmq.SNDHWM]
    app.iopub_thread.socket.setsockopt(zmq.XPUB_NODROP, 1)


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


def send_in_turn(thread, *args, send=IOPubThread.send_multipart, **kwargs):
    if thread.thread.ident == threading.get_ident():  # else it may wait for ever for room in its own queue
        thread._really_send(*args, **kwargs)
        return
    send(thread, *args, **kwargs)
    if len(thread._events) > AHEAD and thread.thread.is_alive():
        wait_for(thread)


def send_what_it_holds(stream, flush=OutStream._flush):
    stream._cellblock_sending = True
    try:
        flush(stream)
    finally:
        stream._cellblock_sending = False


def holds_text(stream):  # that was not given to the socket yet
    with stream._buffer_lock:
        buffers = list(stream._buffers.values()) if hasattr(stream, "_buffers") else [stream._buffer]
        held = getattr(stream, "_cellblock_others", None) or any(buffer.tell() for buffer in buffers)
    return held or getattr(stream, "_cellblock_sending", False)


def flush_in_turn(stream):  # ipykernel's own complains to descriptor 2, which may be the pipe that its caller is to empty
    thread = stream.pub_thread
    if not thread or not sends_elsewhere(thread):
        stream._flush()
    elif holds_text(stream):
        wait_for(thread, stream._flush)


def write_in_turn(stream, text, write=OutStream.write):
    n = write(stream, text)
    stream._cellblock_gathered = getattr(stream, "_cellblock_gathered", 0) + len(text)
    if stream._cellblock_gathered > GATHERED and stream._is_master_process():
        stream._cellblock_gathered = 0
        flush_in_turn(stream)
    return n


IPKernelApp.init_iopub, IOPubThread.send_multipart = open_iopub, send_in_turn
OutStream.write, OutStream.flush, OutStream._flush = write_in_turn, flush_in_turn, send_what_it_holds
