# Tells of a command ("!make") that it failed. IPython keeps its exit status in a variable of which few know, and goes on. One that is to
# go on behind the cell ("!./serve &") does so, which IPython refuses for what it would have to read; here it prints into the kernel's pipe.
import functools
import subprocess
from signal import Signals

from ipykernel import zmqshell


def signal_name(number):
    return Signals(number).name if number in set(Signals) else f"signal {number}"


def telling_failure(run):
    @functools.wraps(run)
    def run_and_tell(command):
        status = run(command)
        if status:
            print(f"[exit status {status}]" if status > 0 else f"[ended by {signal_name(-status)}]")
        return status

    return run_and_tell


def run_command(shell, command):
    command = shell.var_expand(command, depth=1)
    run = start_command if command.rstrip().endswith("&") else zmqshell.system
    shell.user_ns["_exit_code"] = run(command)


@telling_failure
def start_command(command):
    return subprocess.call(command, shell=True)


if hasattr(zmqshell, "system"):
    zmqshell.system = telling_failure(zmqshell.system)
    zmqshell.ZMQInteractiveShell.system_piped = zmqshell.ZMQInteractiveShell.system = run_command
