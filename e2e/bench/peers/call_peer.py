"""Runs each cell in a process of its own, for comparison: in a new container, or by `docker exec` in one that stays.

    call_peer.py DOCKER_HOST IMAGE run|exec
"""
import subprocess
import sys
import uuid

import lines

LIMITS = ["--network", "none", "--read-only", "--cap-drop", "ALL", "--security-opt", "no-new-privileges", "--user", "65534:65534",
          "--memory", "512m", "--memory-swap", "512m", "--pids-limit", "128", "--tmpfs", "/tmp:nosuid,nodev,size=64m,mode=1777",
          "--env", "HOME=/tmp", "--env", "MPLCONFIGDIR=/tmp"]
# What shows a cell's value and its errors as a notebook would; the cell comes by standard input.
WRAPPER = ("import sys; from IPython.core.interactiveshell import InteractiveShell as S; "
           "r = S.instance().run_cell(sys.stdin.read()); sys.exit(not r.success)")
docker = ["docker", "--host", sys.argv[1]]
name = "cellblock-bench-" + uuid.uuid4().hex[:8]


def in_new_container(code):
    subprocess.run(docker + ["run", "--rm", "--interactive", *LIMITS, sys.argv[2], "/usr/bin/python3", "-c", WRAPPER],
                   input=code.encode(), stdout=subprocess.DEVNULL, check=True)


def in_old_container(code):
    subprocess.run(docker + ["exec", name, "/usr/bin/python3", "-c", code], stdout=subprocess.DEVNULL, check=True)


if sys.argv[3] == "run":
    lines.serve(in_new_container)
else:
    subprocess.run(docker + ["run", "--detach", "--name", name, *LIMITS, sys.argv[2], "sleep", "infinity"], stdout=subprocess.DEVNULL, check=True)
    try:
        lines.serve(in_old_container)
    finally:
        subprocess.run(docker + ["rm", "--force", name], stdout=subprocess.DEVNULL)
