# Tells of a command ("!make") that it failed. IPython keeps its exit status in a variable of which few know, and goes on.
import functools
from signal import Signals

from ipykernel import zmqshell


def telling_failure(run):
    @functools.wraps(run)
    def run_and_tell(command):
        status = run(command)
        if status is not None and status > 0:
            print(f"[exit status {status}]")
        elif status is not None and status < 0:
            print(f"[ended by {Signals(-status).name}]" if -status in set(Signals) else f"[ended by signal {-status}]")
        return status

    return run_and_tell


if hasattr(zmqshell, "system"):
    zmqshell.system = telling_failure(zmqshell.system)
