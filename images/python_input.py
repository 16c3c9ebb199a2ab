# Lets input() and getpass() fail with a reason. Of the answer "\x04" (^D) ipykernel makes an EOFError without a word; here
# what comes behind that is the error's message.
#
# Output and prompts travel over two sockets, and a prompt may overtake what was printed before it. A user should read that
# first, so it gets a head start.
import functools
import sys
import time

HEAD_START = 0.02  # seconds, which nobody notices who is about to type


def ask_after_output(kernel):
    def asking(ask):
        @functools.wraps(ask)
        def line_of_input(*args, **options):
            sys.stdout.flush()
            sys.stderr.flush()
            time.sleep(HEAD_START)
            line = ask(*args, **options)
            if line.startswith("\x04"):
                raise EOFError(line[1:])
            return line

        return line_of_input

    kernel.raw_input, kernel.getpass = asking(kernel.raw_input), asking(kernel.getpass)
