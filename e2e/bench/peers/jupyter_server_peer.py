"""Drives a kernel through Debian's jupyter-server, over its WebSocket, for comparison.

    jupyter_server_peer.py ARGV DIR

ARGV is the kernel's, as JSON; DIR an empty folder. The socket's delays are off, so that the server is not slowed by its client.
"""
import json
import os
import socket
import subprocess
import sys
import time
import urllib.request
import uuid

import lines
from tornado.ioloop import IOLoop
from tornado.websocket import websocket_connect

TOKEN = uuid.uuid4().hex


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def start_server(argv, folder, port):
    kernels = os.path.join(folder, "data", "kernels", "bench")
    os.makedirs(kernels)
    with open(os.path.join(kernels, "kernel.json"), "w") as f:
        json.dump({"argv": argv, "display_name": "bench", "language": "python"}, f)
    env = dict(os.environ, JUPYTER_DATA_DIR=os.path.join(folder, "data"), JUPYTER_CONFIG_DIR=os.path.join(folder, "config"),
               JUPYTER_RUNTIME_DIR=os.path.join(folder, "run"), PYDEVD_DISABLE_FILE_VALIDATION="1")
    return subprocess.Popen(
        [sys.executable, "-W", "ignore", "-m", "jupyter_server", "--no-browser", "--allow-root", "--ServerApp.ip=127.0.0.1",
         "--ServerApp.port=%d" % port, "--ServerApp.port_retries=0", "--ServerApp.token=" + TOKEN, "--ServerApp.root_dir=" + folder,
         "--ServerApp.log_level=ERROR", "--ServerApp.disable_check_xsrf=True", "--ServerApp.iopub_msg_rate_limit=1e12",
         "--ServerApp.iopub_data_rate_limit=1e12",
         # Between two of its turns the peer reads nothing, and would be taken for dead.
         "--ServerApp.tornado_settings={'ws_ping_interval': 0}"], env=env, stdout=subprocess.DEVNULL)


def new_kernel(port):
    request = urllib.request.Request(
        "http://127.0.0.1:%d/api/kernels" % port, data=b'{"name": "bench"}',
        headers={"Authorization": "token " + TOKEN, "Content-Type": "application/json"})
    for _ in range(600):
        try:
            with urllib.request.urlopen(request) as answer:
                return json.load(answer)["id"]
        except OSError:
            time.sleep(0.1)
    raise RuntimeError("jupyter-server does not answer")


class Kernel:
    def __init__(self, port, kernel):
        self.loop = IOLoop.current()
        url = "ws://127.0.0.1:%d/api/kernels/%s/channels?token=%s" % (port, kernel, TOKEN)
        self.ws = self.loop.run_sync(lambda: websocket_connect(url, max_message_size=1 << 30))
        self.sock = self.ws.protocol.stream.socket
        self.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    async def run(self, code):
        msg_id = uuid.uuid4().hex
        header = {"msg_id": msg_id, "msg_type": "execute_request", "username": "", "session": "bench", "version": "5.3", "date": ""}
        await self.ws.write_message(json.dumps({
            "header": header, "parent_header": {}, "metadata": {}, "channel": "shell", "buffers": [],
            "content": {"code": code, "silent": False, "store_history": True, "user_expressions": {}, "allow_stdin": False}}))
        idle = replied = False
        while not (idle and replied):
            self.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_QUICKACK, 1)
            msg = json.loads(await self.ws.read_message())
            if msg["parent_header"].get("msg_id") != msg_id:
                continue
            idle = idle or msg["msg_type"] == "status" and msg["content"]["execution_state"] == "idle"
            replied = replied or msg["msg_type"] == "execute_reply"

    def execute(self, code):
        self.loop.run_sync(lambda: self.run(code))


port = free_port()
server = start_server(json.loads(sys.argv[1]), sys.argv[2], port)
try:
    lines.serve(Kernel(port, new_kernel(port)).execute)
finally:
    server.terminate()  # it ends its kernel, too
    server.wait()
