# Spares every cell what ipykernel does for clients that read one channel after the other, for logs that nobody reads, and
# over and over. Ours waits for the end of both channels.
import functools
import json
import logging
from datetime import datetime

import jupyter_client.jsonutil as jsonutil
import zmq
from ipykernel import ipkernel, kernelbase
from IPython.core import formatters
from jupyter_client.session import json_packer


async def nothing():
    pass


class QuietSocket:
    # Hands messages to the thread that sends, and lets it sleep until the next one comes.
    def __init__(self, thread):
        self.thread = thread

    def send_multipart(self, *args, **kwargs):
        self.thread._events.append(lambda: self.thread._really_send(*args, **kwargs))


def announces_itself(request):  # by an execute_input, before any code of the user's runs
    content = request.get("content")
    return request.get("header", {}).get("msg_type") == "execute_request" and isinstance(content, dict) and content.get("silent") is False


class Packer:
    # Makes JSON of the parts of messages as jupyter_client does. What all messages of a cell have, its header, is made once.
    style = dict(default=jsonutil.json_default, ensure_ascii=False, allow_nan=False)
    encode, encode_large = staticmethod(encoder(json.encoder.encode_basestring, **style)), staticmethod(encoder(quote, **style))
    header, packed = None, b""

    def expect(self, header):
        self.header = None
        self.packed = self(header)
        self.header = header

    def __call__(self, part):
        if part is self.header:
            return self.packed
        if part == {}:
            return b"{}"
        encode = self.encode_large if isinstance(part, dict) and holds_large_text(part) else self.encode
        try:
            return encode(part).encode("utf8", errors="backslashreplace")  # half a pair of surrogates is escaped as JSON does
        except (TypeError, ValueError, RecursionError):
            return json_packer(part)  # it knows what else may be done


def send_busy_with_the_next(kernel):
    thread, publish = getattr(kernel, "iopub_thread", None), kernel._publish_status
    if not all(hasattr(thread, name) for name in ("_events", "_really_send", "thread")):
        return

    def publish_status(status, channel="shell", *args, **options):
        if status != "busy" or channel != "shell" or args or options or not thread.thread.is_alive():
            return publish(status, channel, *args, **options)
        request = kernel.get_parent("shell")
        if kernel._aborting or not announces_itself(request):
            return publish(status, channel)
        if isinstance(kernel.session.pack, Packer):
            kernel.session.pack.expect(request["header"])
        kernel.session.send(QuietSocket(thread), "status", {"execution_state": "busy"}, parent=request, ident=kernel._topic("status"))

    kernel._publish_status = publish_status


def transform_once(kernel):
    # do_execute asks what a cell is in plain Python, and run_cell asks again before anything else is done.
    execute, transform, expected, last = kernel.do_execute, kernel.shell.transform_cell, [], []

    @functools.wraps(execute)
    def do_execute(*args, **options):
        expected[:] = [True]
        return execute(*args, **options)

    def transform_cell(raw_cell):
        if last and last.pop(0) is raw_cell:
            return last.pop()
        plain = transform(raw_cell)
        last[:] = (raw_cell, plain) if expected else ()
        expected.clear()
        return plain

    kernel.do_execute, kernel.shell.transform_cell = do_execute, transform_cell
    kernel.shell.events.register("pre_execute", last.clear)  # what comes next may change how cells are transformed


def format_directly():
    # A dozen times a result, the decorator of formatters matches arguments with a signature; they have the right order as they are.
    catch = getattr(formatters.catch_format_error, "__wrapped__", None)

    def direct(method):
        @functools.wraps(method)
        def call(formatter, obj, *args, **options):
            return catch(method, formatter, obj, *args, **options)

        return call

    for cls in vars(formatters).values():
        decorated = isinstance(cls, type) and getattr(cls.__dict__.get("__call__"), "__wrapped__", None)
        if catch and decorated:
            cls.__call__ = direct(decorated)


def remember_signatures():
    # Which arguments a method takes is asked three times a cell.
    for name in ("_accepts_cell_id", "_accepts_parameters"):
        if ask := getattr(kernelbase, name, None):
            once = functools.lru_cache(64)(lambda method, names, ask=ask: ask(method, *map(list, names)))
            for module in (kernelbase, ipkernel):
                if getattr(module, name, None) is ask:
                    setattr(module, name, lambda method, *names, once=once: once(method, tuple(map(tuple, names))))


def parse_date(text, parse=jsonutil.parse_date):
    # Jupyter's own way takes ten times as long.
    if isinstance(text, str) and text[10:11] == "T" and text[-1] == "Z":
        try:
            return datetime.fromisoformat(text[:-1] + "+00:00")
        except ValueError:
            pass
    return parse(text)


def send_frames_directly():
    # For each of a message's frames zmq's own send_multipart makes flags of names, and its send looks for what hardly anybody asks for.
    send, send_multipart, more = getattr(zmq.backend.Socket, "send", None), zmq.Socket.send_multipart, int(zmq.SNDMORE)

    @functools.wraps(send_multipart)
    def send_frames(socket, frames, flags=0, copy=True, track=False, **options):
        plain = type(socket) is zmq.Socket and type(frames) is list and set(map(type, frames)) == {bytes}
        if not plain or flags or not copy or track or options:
            return send_multipart(socket, frames, flags, copy, track, **options)
        for frame in frames[:-1]:
            send(socket, frame, more)
        return send(socket, frames[-1])

    if send:
        zmq.Socket.send_multipart = send_frames


def ask_for_events_directly():
    # Each message has a socket asked three times; what is no attribute is looked for by its name.
    zmq.Socket.EVENTS = zmq.Socket.events = property(lambda socket: socket.get(zmq.EVENTS))


def keep_pace(kernel):
    kernel._execute_sleep = 0  # before each reply
    kernel._flush_control_queue = nothing  # before each request: control has a thread of its own
    kernel.log.setLevel(max(kernel.log.level, logging.WARNING))  # its handlers drop the rest when all of it is made
    if kernel.session.pack is json_packer:
        kernel.session.pack = Packer()
    send_busy_with_the_next(kernel)
    transform_once(kernel)
    format_directly()
    remember_signatures()
    send_frames_directly()
    ask_for_events_directly()
    jsonutil.parse_date = parse_date
