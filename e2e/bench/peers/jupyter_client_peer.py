"""Drives a bare kernel with Python's own jupyter_client, for comparison.

Reads lines "N" from stdin; for each runs 1+1 N times, one after the other, and prints the latencies in milliseconds as a
JSON list. An execution is over when its reply and its idle status have both arrived.
"""
import json
import os
import sys
import time

from jupyter_client.kernelspec import KernelSpec
from jupyter_client.manager import KernelManager


def execute(client, code):
    msg_id = client.execute(code)
    while True:
        msg = client.get_iopub_msg(timeout=60)
        if msg["parent_header"].get("msg_id") == msg_id and msg["msg_type"] == "status" \
                and msg["content"]["execution_state"] == "idle":
            break
    while client.get_shell_msg(timeout=60)["parent_header"].get("msg_id") != msg_id:
        pass


def main():
    manager = KernelManager(kernel_name="python3", transport="ipc")
    # The very kernel that cellblock launches, as JSON.
    manager._kernel_spec = KernelSpec(argv=json.loads(sys.argv[1]), display_name="Python 3", language="python")
    manager.start_kernel(env=dict(os.environ, PYDEVD_DISABLE_FILE_VALIDATION="1"))
    client = manager.blocking_client()
    client.start_channels()
    client.wait_for_ready(timeout=60)
    try:
        print("ready", flush=True)
        for line in sys.stdin:
            latencies = []
            for _ in range(int(line)):
                start = time.perf_counter()
                execute(client, "1+1")
                latencies.append((time.perf_counter() - start) * 1000)
            print(json.dumps(latencies), flush=True)
    finally:
        client.stop_channels()
        manager.shutdown_kernel(now=True)


main()
