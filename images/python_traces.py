# Tells where an error happened that Python itself prints: of a thread, of __del__, of a task that nobody awaited, and by
# traceback.print_exc() or logging. A cell's code is in a file that nobody has ever seen: "/tmp/ipykernel_16/339234766.py". Its number
# is not told, as a session counts on over kernels; the line itself stands below.
import re
import sys
import threading
import traceback
from asyncio import coroutines, format_helpers

# It begins where a word does: a line of the code itself may be one word of a megabyte, with slashes all through it.
CELL_FILE = re.compile(r"(?<![^\s\"'<>])/[^\s\"'<>]*/ipykernel_\d+/\d+\.py")


def with_cells_named(compiler, tell):
    # tell, which returns a text, without the names of cells' files in it.
    def told(*args, **options):
        text = tell(*args, **options)
        return text and CELL_FILE.sub(lambda file: "<cell>" if file[0] in compiler._filename_map else file[0], text)

    return told


def ending_with_cell(compiler, walk):
    # walk without what runs a cell, of which traceback.print_stack() and a call that logging cannot write would tell 20 frames.
    def walk_to_cell(frame):
        for one, line in walk(frame):
            yield one, line
            if one.f_code.co_name == "<module>" and one.f_code.co_filename in compiler._filename_map:
                return

    return lambda frame: walk(frame) if frame is None else walk_to_cell(frame)  # None is who calls, so many frames from here


def name_cells(compiler):
    if not hasattr(compiler, "_filename_map"):
        return
    traceback.walk_stack = ending_with_cell(compiler, traceback.walk_stack)
    for owner, name in (traceback.StackSummary, "format_frame_summary"), (coroutines, "_format_coroutine"), (format_helpers, "_format_callback_source"):
        if hasattr(owner, name):
            setattr(owner, name, with_cells_named(compiler, getattr(owner, name)))


def of_user(tb):
    # A traceback without what began the thread, unless that is all there is.
    for step in steps(tb):
        if not of_kernel(step.tb_frame) and step.tb_frame.f_code.co_filename != threading.__file__:
            return step
    return tb


def print_error(headline, value, tb):
    # At once, as a program that ends may print no more.
    text = "".join(traceback.format_exception(type(value), value, tb))
    if sys.stderr is not None:
        sys.stderr.write(f"{headline}:\n{text}")


def thread_failed(args):
    if args.exc_type is not SystemExit:
        print_error(f"Exception in thread {args.thread.name if args.thread else threading.get_ident()}", args.exc_value, of_user(args.exc_traceback))


def name_of(thing):
    if thing is None:
        return ""
    try:
        return getattr(thing, "__qualname__", None) or repr(thing)
    except Exception:
        return type(thing).__name__  # its own code has run, to say what it is


def nobody_caught(args):
    # What __del__ or a callback has raised, of which nobody else is told.
    print_error(f"{args.err_msg or 'Exception ignored in'} {name_of(args.object)}".rstrip(), args.exc_value, args.exc_traceback)


def tell_where_errors_happened(shell):
    name_cells(shell.compile)
    threading.excepthook, sys.unraisablehook = thread_failed, nobody_caught
