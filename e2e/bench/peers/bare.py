"""A bare kernel and Python's own client of it."""
import os
import shutil
import tempfile

from jupyter_client.kernelspec import KernelSpec
from jupyter_client.manager import KernelManager


def start(argv):
    """Starts a kernel with an argv and returns its manager and a client that is ready."""
    folder = tempfile.mkdtemp(prefix="cb-bench-")
    manager = KernelManager(kernel_name="python3", transport="ipc", ip=os.path.join(folder, "k"))  # its sockets, else in this folder
    manager._kernel_spec = KernelSpec(argv=argv, display_name="Python 3", language="python")
    manager.start_kernel(env=dict(os.environ, PYDEVD_DISABLE_FILE_VALIDATION="1"))
    client = manager.blocking_client()
    client.start_channels()
    client.wait_for_ready(timeout=120)
    return manager, client


def execute(client, code):
    """Runs a cell. It is over when its reply and its idle status have both arrived."""
    msg_id = client.execute(code)
    while True:
        msg = client.get_iopub_msg(timeout=600)
        if msg["parent_header"].get("msg_id") == msg_id and msg["msg_type"] == "status" \
                and msg["content"]["execution_state"] == "idle":
            break
    while True:
        reply = client.get_shell_msg(timeout=600)
        if reply["parent_header"].get("msg_id") == msg_id:
            break
    if reply["content"]["status"] != "ok":
        raise RuntimeError(reply["content"])


def stop(*kernels):
    """Ends what start has returned. What ends a kernel runs its client's callbacks, so all of those are closed after that."""
    for manager, _ in kernels:
        manager.shutdown_kernel(now=True)
    for manager, client in kernels:
        client.stop_channels()
        shutil.rmtree(os.path.dirname(manager.ip))
