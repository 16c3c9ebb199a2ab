# Lets input() and getpass() fail with a reason. Of the answer "\x04" (^D) ipykernel makes an EOFError without a word; here
# what comes behind that is the error's message.
import functools


def say_why_there_is_no_input(kernel):
    def explained(ask):
        @functools.wraps(ask)
        def line_of_input(*args, **options):
            line = ask(*args, **options)
            if line.startswith("\x04"):
                raise EOFError(line[1:])
            return line

        return line_of_input

    kernel.raw_input, kernel.getpass = explained(kernel.raw_input), explained(kernel.getpass)
