# Spares every cell what ipykernel does for clients that read one channel after the other, for logs that nobody reads, and
# over and over. Ours waits for the end of both channels.
import functools
import logging
from datetime import datetime

import jupyter_client.jsonutil as jsonutil
from ipykernel import ipkernel, kernelbase


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
        kernel.session.send(QuietSocket(thread), "status", {"execution_state": "busy"}, parent=request, ident=kernel._topic("status"))

    kernel._publish_status = publish_status


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


def keep_pace(kernel):
    kernel._execute_sleep = 0  # before each reply
    kernel._flush_control_queue = nothing  # before each request: control has a thread of its own
    kernel.log.setLevel(max(kernel.log.level, logging.WARNING))  # its handlers drop the rest when all of it is made
    send_busy_with_the_next(kernel)
    remember_signatures()
    jsonutil.parse_date = parse_date
