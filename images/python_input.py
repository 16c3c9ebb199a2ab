# Lets input() and getpass() fail with a reason. Of the answer "\x04" (^D) ipykernel makes an EOFError without a word; here
# what comes behind that is the error's message.
#
# A debugger stops, too, to be told what to do next. breakpoint() is passed over where nobody can: the code goes on, as it would where no
# debugger is.
#
# Output and prompts travel over two sockets, and a prompt may overtake what was printed before it. A user should read that
# first, so it gets a head start.
#
# What "!" runs has a terminal of its own, at which nobody sits: a program that asks there would wait until the cell's time
# is over. It finds the end of its input instead, and "more", which asks for keys all the same, is "cat".
import functools
import os
import sys
import time

from IPython.core import debugger
from IPython.core.error import StdinNotImplementedError
from ipykernel import zmqshell

HEAD_START = 0.02  # seconds, which nobody notices who is about to type
NO_VALUE = "nobody can answer input() here: put the value into the code"
NO_DEBUGGER = "nobody can answer a debugger here: print what you want to see; after an error, sys.last_traceback has its frames"
NO_SECRET = "nobody can answer getpass() here: let the code read the secret from a file in its working directory, or do without"


def ask_after_output(kernel):
    def asking(ask, nobody):
        @functools.wraps(ask)
        def line_of_input(*args, **options):
            if not kernel._allow_stdin:
                raise StdinNotImplementedError(NO_DEBUGGER if debugger_asks(sys._getframe(1)) else nobody)
            sys.stdout.flush()
            sys.stderr.flush()
            time.sleep(HEAD_START)
            line = ask(*args, **options)
            if line.startswith("\x04"):
                raise EOFError(line[1:])
            return line

        return line_of_input

    kernel.raw_input, kernel.getpass = asking(kernel.raw_input, NO_VALUE), asking(kernel.getpass, NO_SECRET)


def debugger_asks(frame):
    debugger = getattr(sys.modules.get("bdb"), "Bdb", ())
    while frame is not None:
        if frame.f_code.co_name == "cmdloop" and isinstance(frame.f_locals.get("self"), debugger):
            return True
        frame = frame.f_back
    return False


def pass_over_breakpoints(kernel, stop=sys.breakpointhook):
    def breakpointhook(*args, **options):
        if os.environ.get("PYTHONBREAKPOINT"):  # a hook of the user's own may ask nobody
            return stop(*args, **options)
        if kernel._allow_stdin:
            return debugger.Pdb().set_trace(sys._getframe(1))  # stop would do so here, where its caller's names are not
        print("breakpoint() is passed over: nobody can answer it here", file=sys.stderr)

    sys.breakpointhook = breakpointhook


def debug_nothing(kernel):
    # Of %debug, and of every error after "%pdb on", which would cost the cell its reply where the debugger's question fails.
    debug = kernel.shell.debugger

    def debug_or_tell(force=False):
        if kernel._allow_stdin:
            debug(force)
        elif force or kernel.shell.call_pdb:
            print(NO_DEBUGGER, file=sys.stderr)

    kernel.shell.debugger = debug_or_tell


MORE = 'more() (for word; do shift; case $word in [-+]*) ;; *) set -- "$@" "$word";; esac; done; cat -- "$@")'  # without its options


def run_without_input(command, system=zmqshell.system):
    return system("exec </dev/null; " + MORE + "; " + command)


zmqshell.system = run_without_input
