# Lets every interrupt reach the cell that it is meant for, and nothing else. A kernel has taken a request as soon as it says
# that it is busy; but ipykernel ignores a SIGINT that comes between that and its handler, one that comes in the handler but
# not in the user's code costs the cell its reply, and one that comes at the handler's very end costs the kernel its life. A
# cell that awaits something hears it only when that comes, and one that computes between two awaits not before the next.
# Where a cell awaits, its task is cancelled; the error that ends it is KeyboardInterrupt all the same, as with asyncio.run.
# A signal that comes just before the loop begins to wait does not end its wait: each writes a byte that does.
import asyncio
import contextlib
import functools
import inspect
import socket
import sys
import threading
from _signal import SIGINT, default_int_handler, getsignal, set_wakeup_fd, signal  # those of signal look up names for what they are given

INTERRUPTED = compile("raise KeyboardInterrupt('interrupted as it began')", "<interrupt>", "exec")


@contextlib.contextmanager
def woken_by_signals(loop):
    with contextlib.ExitStack() as undo:
        try:
            wakes, writes = map(undo.enter_context, socket.socketpair())
            wakes.setblocking(False)
            writes.setblocking(False)
            loop.add_reader(wakes, wakes.recv, 4096)
        except Exception:  # no file can be opened any more, or a cell has made sockets its own: it runs without the byte that wakes
            undo.close()
        else:
            undo.callback(loop.remove_reader, wakes)
            undo.enter_context(writing_signals(writes.fileno()))
        yield


@contextlib.contextmanager
def writing_signals(fd):
    others = set_wakeup_fd(fd, warn_on_full_buffer=False)
    if others != -1:  # the loop's own (uvloop, add_signal_handler), or the user's: it stays
        set_wakeup_fd(others)
    try:
        yield
    finally:
        current = set_wakeup_fd(-1)
        if current != fd:  # the cell has set one of its own
            set_wakeup_fd(current)


def hear_interrupts(kernel):
    shell, set_parent, raise_in_handler = kernel.shell, kernel.set_parent, kernel.pre_handler_hook
    execute, run_code, show = kernel.shell_handlers["execute_request"], shell.run_code, shell.showtraceback
    interrupted = executing = in_code = cancelled = False

    def remember(*_):
        nonlocal interrupted
        interrupted = True

    def take(ident, parent, channel="shell"):  # comes before "busy"
        nonlocal interrupted, cancelled, executing
        if channel == "shell":
            interrupted, cancelled, executing = False, False, parent.get("header", {}).get("msg_type") == "execute_request"
        return set_parent(ident, parent, channel)

    def before():
        if executing:
            signal(SIGINT, remember)
        else:
            raise_in_handler()

    def after():
        signal(SIGINT, remember)

    def interruptible(run):
        @functools.wraps(run)
        def run_interruptibly(*args, **options):
            if getsignal(SIGINT) is not remember or threading.current_thread() is not threading.main_thread():
                return run(*args, **options)  # called by code that runs already, or by a thread, which hears no signals
            signal(SIGINT, default_int_handler)
            try:
                return run(*args, **options)
            finally:
                signal(SIGINT, remember)

        return run_interruptibly

    @contextlib.contextmanager
    def interruptible_task(task):  # of a cell that awaits
        loop = task.get_loop()

        def interrupt(*_):
            nonlocal cancelled
            if in_code and asyncio.current_task(loop) is task:
                raise KeyboardInterrupt
            cancelled = True
            loop.call_soon_threadsafe(task.cancel)  # this also wakes the loop

        signal(SIGINT, interrupt)
        try:
            with woken_by_signals(loop):
                yield
        finally:
            signal(SIGINT, remember)

    async def run_code_unless_interrupted(code, result=None, **options):
        nonlocal interrupted, in_code
        if interrupted:
            interrupted, code = False, INTERRUPTED
        outer, in_code = in_code, True
        try:
            return await run_code(code, result, **options)
        finally:
            in_code = outer
            if result is not None:
                result.error_in_exec = interrupt_of(result.error_in_exec)

    def interrupt_of(error):
        if cancelled and isinstance(error, asyncio.CancelledError):
            return KeyboardInterrupt().with_traceback(error.__traceback__)
        return error

    def showtraceback(exc_tuple=None, *args, **options):
        error = interrupt_of((exc_tuple or sys.exc_info())[1])
        if cancelled and isinstance(error, KeyboardInterrupt):
            exc_tuple = KeyboardInterrupt, error, error.__traceback__
        return show(exc_tuple, *args, **options)

    async def execute_request(stream, ident, parent, *more):
        try:
            result = execute(stream, ident, parent, *more)
            if inspect.isawaitable(result):
                await result
        except (KeyboardInterrupt, asyncio.CancelledError):
            error = {"ename": "KeyboardInterrupt", "evalue": "", "traceback": ["KeyboardInterrupt: interrupted outside of the cell's code"]}
            kernel.send_response(kernel.iopub_socket, "error", error)
            reply = {"status": "error", "execution_count": kernel.execution_count, **error}
            kernel.session.send(stream, "execute_reply", reply, parent=parent, ident=ident)

    kernel.set_parent, kernel.pre_handler_hook, kernel.post_handler_hook = take, before, after
    kernel._cancel_on_sigint, kernel.shell_handlers["execute_request"] = interruptible_task, execute_request
    shell.run_cell, shell.run_code, shell.showtraceback = interruptible(shell.run_cell), run_code_unless_interrupted, showtraceback
    shell.user_expressions = interruptible(shell.user_expressions)
    signal(SIGINT, remember)
