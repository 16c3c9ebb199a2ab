# Lets what a thread or a task prints or displays belong to the cell that started it, also while a later cell runs.
#
# ipykernel 6.17 gives it to the cell that runs; 6.29 follows some threads, but neither displays nor pools; 7 does it all by
# itself.
import contextvars
import threading
from concurrent.futures import ThreadPoolExecutor

import ipykernel
from ipykernel.iostream import OutStream
from ipykernel.zmqshell import ZMQDisplayPublisher
from jupyter_client.session import extract_header

# The header of the request that the running thread or task works for. Tasks of asyncio inherit it by themselves.
cell = contextvars.ContextVar("cellblock_cell", default=None)


def follow_threads():
    start, bootstrap = threading.Thread.start, threading.Thread._bootstrap_inner

    def start_in_cell(thread):
        thread._cellblock_cell = cell.get()
        return start(thread)

    def bootstrap_in_cell(thread):  # and not run, which subclasses override
        cell.set(getattr(thread, "_cellblock_cell", None))
        return bootstrap(thread)

    threading.Thread.start, threading.Thread._bootstrap_inner = start_in_cell, bootstrap_in_cell


def follow_pools():
    submit = ThreadPoolExecutor.submit

    def submit_in_cell(pool, fn, /, *args, **kwargs):
        return submit(pool, work_in, cell.get(), fn, args, kwargs)

    def work_in(header, fn, args, kwargs):  # a pool's thread works for one cell after the other
        token = cell.set(header)
        try:
            return fn(*args, **kwargs)
        finally:
            cell.reset(token)

    ThreadPoolExecutor.submit = submit_in_cell


def label(cls):
    # Instances of cls look at their parent_header whenever they send. It was set when the running cell began.
    own = cls.__dict__.get("parent_header")
    if not isinstance(own, property):
        own = property(lambda self: vars(self).get("_cellblock_cell", {}), lambda self, header: vars(self).update(_cellblock_cell=header))
    cls.parent_header = property(lambda self: cell.get() or own.fget(self), own.fset)


def tell_streams(shell):
    # Which cell runs, also while a cell has put something else for sys.stdout, which is all that IPython tells: programs print on.
    set_parent = shell.set_parent

    def begin(parent):
        set_parent(parent)
        for stream in redirected:
            stream.set_parent(parent)

    shell.set_parent = begin


def follow_cells(shell):
    set_parent = shell.set_parent

    def begin(parent):
        set_parent(parent)
        cell.set(extract_header(parent))

    shell.set_parent = begin


def own_output_to_own_cell(shell):
    tell_streams(shell)
    if ipykernel.version_info[0] >= 7:
        return
    follow_threads()
    follow_pools()
    label(ZMQDisplayPublisher)
    label(OutStream)
    follow_cells(shell)
