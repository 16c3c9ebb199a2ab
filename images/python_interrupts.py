# Lets every interrupt reach the cell that it is meant for, and nothing else. A kernel has taken a request as soon as it says
# that it is busy; but ipykernel ignores a SIGINT that comes between that and its handler, one that comes in the handler but
# not in the user's code costs the cell its reply, and one that comes at the handler's very end costs the kernel its life.
import functools
import inspect
from signal import SIGINT, default_int_handler, signal

INTERRUPTED = compile("raise KeyboardInterrupt('interrupted as it began')", "<interrupt>", "exec")


def hear_interrupts(kernel):
    shell, set_parent, raise_in_handler = kernel.shell, kernel.set_parent, kernel.pre_handler_hook
    execute, run_code = kernel.shell_handlers["execute_request"], kernel.shell.run_code
    interrupted = executing = False

    def remember(*_):
        nonlocal interrupted
        interrupted = True

    def take(ident, parent, channel="shell"):  # comes before "busy"
        nonlocal interrupted, executing
        if channel == "shell":
            interrupted, executing = False, parent.get("header", {}).get("msg_type") == "execute_request"
        return set_parent(ident, parent, channel)

    def before():
        if not executing:
            raise_in_handler()

    def after():
        signal(SIGINT, remember)

    def interruptible(run):
        @functools.wraps(run)
        def run_interruptibly(*args, **options):
            old = signal(SIGINT, default_int_handler)
            try:
                return run(*args, **options)
            finally:
                signal(SIGINT, old)

        return run_interruptibly

    async def run_code_unless_interrupted(code, *args, **options):
        nonlocal interrupted
        if interrupted:
            interrupted, code = False, INTERRUPTED
        return await run_code(code, *args, **options)

    async def execute_request(stream, ident, parent, *more):
        try:
            result = execute(stream, ident, parent, *more)
            if inspect.isawaitable(result):
                await result
        except KeyboardInterrupt:
            error = {"ename": "KeyboardInterrupt", "evalue": "", "traceback": ["KeyboardInterrupt: interrupted outside of the cell's code"]}
            kernel.send_response(kernel.iopub_socket, "error", error)
            reply = {"status": "error", "execution_count": kernel.execution_count, **error}
            kernel.session.send(stream, "execute_reply", reply, parent=parent, ident=ident)

    kernel.set_parent, kernel.pre_handler_hook, kernel.post_handler_hook = take, before, after
    kernel.shell_handlers["execute_request"] = execute_request
    shell.run_cell, shell.run_code = interruptible(shell.run_cell), run_code_unless_interrupted
    shell.user_expressions = interruptible(shell.user_expressions)
    signal(SIGINT, remember)
