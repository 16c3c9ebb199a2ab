"""Starts a bare kernel in a container and connects to it with jupyter_client, for comparison.

    container_peer.py DOCKER_HOST IMAGE RUNDIR

Reads numbers from stdin; for each starts as many containers at once under the limits of a session, waits until 1+1 has been
answered in each, prints the seconds that each took as a JSON list, and removes them.
"""
import concurrent.futures
import json
import os
import subprocess
import sys
import time
import uuid

from jupyter_client.blocking import BlockingKernelClient


def cold(host, image, rundir):
    name = "cellblock-bench-" + uuid.uuid4().hex[:8]
    folder = os.path.join(rundir, name[-8:])
    os.mkdir(folder, 0o700)
    os.chown(folder, 65534, 65534)
    connection = os.path.join(folder, "c.json")
    with open(connection, "w") as f:
        json.dump({"transport": "ipc", "ip": folder + "/k", "shell_port": 1, "iopub_port": 2, "stdin_port": 3,
                   "control_port": 4, "hb_port": 5, "key": uuid.uuid4().hex, "signature_scheme": "hmac-sha256"}, f)
    os.chmod(connection, 0o600)
    os.chown(connection, 65534, 65534)
    docker = ["docker", "--host", host]
    start = time.perf_counter()
    subprocess.run(docker + [
        "run", "--detach", "--name", name, "--network", "none", "--read-only", "--cap-drop", "ALL",
        "--security-opt", "no-new-privileges", "--user", "65534:65534", "--memory", "2g", "--memory-swap", "2g",
        "--cpus", "2", "--pids-limit", "256", "--tmpfs", "/tmp:noexec,nosuid,nodev,size=256m,mode=1777",
        "--env", "HOME=/tmp", "--volume", folder + ":" + folder, "--workdir", "/tmp", image,
        "/usr/bin/python3", "-m", "ipykernel_launcher", "-f", connection, "--HistoryManager.enabled=False",
    ], check=True, stdout=subprocess.DEVNULL)
    try:
        while not all(os.path.exists("%s/k-%d" % (folder, port)) for port in range(1, 6)):
            time.sleep(0.005)
        client = BlockingKernelClient(connection_file=connection)
        client.load_connection_file()
        client.start_channels()
        client.wait_for_ready(timeout=60)
        msg_id = client.execute("1+1")
        while client.get_shell_msg(timeout=60)["parent_header"].get("msg_id") != msg_id:
            pass
        elapsed = time.perf_counter() - start
        client.stop_channels()
        return elapsed
    finally:
        subprocess.run(docker + ["rm", "--force", name], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


print("ready", flush=True)
for line in sys.stdin:
    with concurrent.futures.ThreadPoolExecutor(int(line)) as pool:
        started = [pool.submit(cold, *sys.argv[1:4]) for _ in range(int(line))]
        print(json.dumps([one.result() for one in started]), flush=True)
