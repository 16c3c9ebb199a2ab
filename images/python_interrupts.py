# Lets every interrupt reach the cell that it is meant for. A kernel has taken a request as soon as it says that it is busy;
# but ipykernel ignores a SIGINT that comes between that and its handler, and one that comes in the handler but not in the
# user's code costs the cell its reply, so that whoever waits for it waits for ever.
import inspect
from signal import SIGINT, default_int_handler, signal


def hear_interrupts(kernel):
    set_parent, raise_in_handler = kernel.set_parent, kernel.pre_handler_hook
    execute = kernel.shell_handlers["execute_request"]
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

    async def execute_request(stream, ident, parent, *more):
        try:
            signal(SIGINT, default_int_handler)
            if interrupted:
                raise KeyboardInterrupt
            result = execute(stream, ident, parent, *more)
            if inspect.isawaitable(result):
                await result
        except KeyboardInterrupt:
            signal(SIGINT, remember)
            error = {"ename": "KeyboardInterrupt", "evalue": "", "traceback": ["KeyboardInterrupt: interrupted outside of the cell's code"]}
            kernel.send_response(kernel.iopub_socket, "error", error)
            reply = {"status": "error", "execution_count": kernel.execution_count, **error}
            kernel.session.send(stream, "execute_reply", reply, parent=parent, ident=ident)

    kernel.set_parent, kernel.pre_handler_hook, kernel.post_handler_hook = take, before, after
    kernel.shell_handlers["execute_request"] = execute_request
    signal(SIGINT, remember)
