# Tells of a command ("!make") that it failed. IPython keeps its exit status in a variable of which few know, and goes on.
import functools
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


if hasattr(zmqshell, "system"):
    zmqshell.system = telling_failure(zmqshell.system)
