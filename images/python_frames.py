# Which frames of a traceback its reader gets, and in which form. What this program and IPython do below a cell is nobody's
# business: a print that is interrupted was interrupted in the cell.
import linecache
import re
import types

LIBRARY = re.compile(r"<frozen|.*/(site-packages|dist-packages|lib/python[\d.]*)/")
RUNS_FILE = "exec(compile(open(__file__, 'rb').read(), __file__, 'exec'))"  # the cell of a file that is run
GO_ON = {"work_in", "bootstrap_in_cell"}  # these call what a user's code named, a library's function perhaps
COLOUR = re.compile(r"\x1b\[[\d;]*m")


def of_kernel(frame):
    code = frame.f_code
    return frame.f_globals is globals() or code.co_name == "_modified_open" and code.co_filename.endswith("/IPython/core/interactiveshell.py")


def runs_file(step):
    if step.tb_frame.f_code.co_name != "<module>":
        return False  # and no line is read of the thousands of frames of deep recursion
    return linecache.getline(step.tb_frame.f_code.co_filename, step.tb_lineno).strip() == RUNS_FILE


def steps(tb):
    while tb is not None:
        yield tb
        tb = tb.tb_next


def without_kernel(tb):
    # Leaves out the kernel's frames, and those of libraries that they call.
    kept, all_of_it, inside = [], list(steps(tb)), False
    for step in all_of_it:
        code, ours = step.tb_frame.f_code, of_kernel(step.tb_frame)
        inside = code.co_name not in GO_ON if ours else inside and LIBRARY.match(code.co_filename)
        if not ours and not inside and not (step.tb_next and runs_file(step)):
            kept.append(step)
    if not kept or len(kept) == len(all_of_it):
        return tb
    made = None
    for step in reversed(kept):
        made = types.TracebackType(made, step.tb_frame, step.tb_lasti, step.tb_lineno)
    return made
