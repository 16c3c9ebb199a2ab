# Shows all of an error. Of an exception group, IPython 8.5 shows only that it is one, and 8.35 prints it to stderr and sends
# the traceback of some earlier error; older ones leave out an exception's notes.
import builtins
import codeop
import difflib
import inspect
import sys
import traceback
import warnings

import stack_data
from IPython.core import ultratb

group = getattr(builtins, "BaseExceptionGroup", ())  # before Python 3.11 there are none
MOST = 10  # exceptions of one group
DEEP = 4  # groups in groups


def chained(value):
    # An exception and what led to it, as Python would show it.
    seen = set()
    while value is not None and id(value) not in seen:
        seen.add(id(value))
        yield value
        value = value.__cause__ or (None if value.__suppress_context__ else value.__context__)


class InspectOnce:
    # The module inspect for IPython's tracebacks, of which newer ones ask for the module of each frame. For a frame of a cell,
    # Python looks through all modules there are, and deep recursion has thousands of them: files are few.
    def __init__(self):
        self.modules = {}  # of files

    def __getattr__(self, name):
        return getattr(inspect, name)

    def getmodule(self, frame):
        file = frame.f_code.co_filename
        if file not in self.modules:
            self.modules[file] = inspect.getmodule(frame)
        return self.modules[file]


SHOWN = 40  # columns of a DataFrame, and characters of the name of one
GUESSED = 1000  # names that a wrong one is compared with
LONG = 10_000  # lines of a file that takes seconds to parse


def read_by_lines(source):
    # To find what ran in a frame, IPython parses the whole file, which takes half a second for pandas' and many seconds for a long one:
    # of these, the line says enough. A source that is no Python has lines only; this one says so of itself.
    read, name = source.__init__, source.code_qualname

    def read_lines(self, filename, lines):
        only_lines = LIBRARY.match(str(filename)) or len(lines) > LONG
        read(self, filename, ("?",) if only_lines else lines)
        if only_lines:
            self.text, self.lines = "".join(lines), [line.rstrip("\r\n") for line in lines]

    def qualified_name(self, code):
        return name(self, code) if self.tree else getattr(code, "co_qualname", code.co_name)

    source.__init__, source.code_qualname = read_lines, qualified_name


def suggestion(value, tb):
    # What Python itself adds to such an error where it prints one: ". Did you mean: 'head'?"
    if not isinstance(value, (AttributeError, ImportError, NameError)):
        return ""
    try:
        said, whole = str(value), str(traceback.TracebackException(type(value), value, tb, limit=0, compact=True))
    except Exception:
        return ""  # the value's own code has run, to say what it has
    if whole == said and "\n" not in said and sys.version_info < (3, 12):  # a message of several lines has its own advice
        return guess(value, tb)
    return whole[len(said):] if whole.startswith(said) and len(whole) < len(said) + 300 else ""


def guess(value, tb):
    # Before 3.12, Python guesses names only where it prints an error itself; which name it was, and of what, it says since 3.10.
    name = getattr(value, "name", None)
    try:
        if isinstance(value, AttributeError) and name:
            among = dir(value.obj)
        elif isinstance(value, NameError) and name:
            frame = [step.tb_frame for step in steps(tb)][-1]
            among = {**frame.f_locals, **frame.f_globals, **vars(builtins)}
        else:
            return ""
        among = [one for one in among if isinstance(one, str) and one != name and one.startswith("_") == name.startswith("_")]
        near = difflib.get_close_matches(name, among[:GUESSED], 1, 0.75)
    except Exception:
        return ""  # the object's own code has run, to say what it has
    return f". Did you mean: {near[0]!r}?" if near else ""


# What of pandas looks for columns, not for rows: a label that these do not find is the name of one.
FINDS_COLUMNS = {
    "__getitem__", "__delitem__", "__getattr__", "_get_item_cache", "_get_item", "_get_label_or_level_values", "get_grouper", "set_index",
    "normalize_dictlike_arg", "pivot_table", "dropna", "duplicated", "_set_grouper", "query", "eval",
}


def table_without(step, frame):
    # The DataFrame in which this frame of pandas has looked for a column, or that of a group.
    known, does = step.tb_frame.f_locals, step.tb_frame.f_code.co_name
    axis = known.get("axis")
    for one in map(known.get, ("self", "obj", "data")):
        if type(one).__name__ == "DataFrameGroupBy" and type(one).__module__.startswith("pandas."):
            one = vars(one).get("obj")
        if type(one) is frame:
            found = axis is one.columns if does == "_drop_axis" else does in FINDS_COLUMNS and not (type(axis) is int and axis == 1)
            return one if found else None
    return None


def columns(value, tb):
    # What to write instead of a column that is not there. Whoever reads the error has often not seen the data.
    frame = getattr(sys.modules.get("pandas"), "DataFrame", None)
    if frame is None or type(value) not in (KeyError, AttributeError) and type(value).__name__ != "UndefinedVariableError":
        return []
    asked, narrows = None, False
    for step in steps(tb):
        if not LIBRARY.match(step.tb_frame.f_code.co_filename):
            asked, narrows = None, False  # what a user's function does not find, which pandas has called, is something else
        elif not narrows and (table := table_without(step, frame)) is not None:
            asked, narrows = table, step.tb_frame.f_code.co_name == "pivot_table"  # it goes on with the columns that are there
    if asked is None:
        return []
    try:
        names = [repr(name)[:SHOWN] for name in asked.columns[:SHOWN]]
    except Exception:
        return []  # a name's own code has run
    left = asked.shape[1] - len(names)
    return [f"The DataFrame's columns: {', '.join(names)}" + (f" and {left} more" if left else "")]


def warnings_of_cells(compiler):
    # A cell's code is in a file that nobody has ever seen: "/tmp/ipykernel_16/339234766.py:3: UserWarning: …". Its number is not told,
    # as a session counts on over kernels; the line itself stands below. What formatwarning is given is less than there is: of a
    # ResourceWarning, where the object was made is in the message alone.
    describe = warnings._formatwarnmsg_impl

    def in_words(message):
        said, filename = describe(message), message.filename
        return said.replace(filename, "<cell>", 1) if filename in getattr(compiler, "_filename_map", ()) else said

    warnings._formatwarnmsg_impl = in_words


def show_whole_errors(shell):
    # A cell is all that there is: what an open bracket begins is not incomplete, as if more might come, but wrong.
    shell.compile.flags &= ~getattr(codeop, "PyCF_ALLOW_INCOMPLETE_INPUT", 0)
    # After sys.exit(), which the kernel outlives, IPython advises exit(), which ends it.
    warnings.filterwarnings("ignore", "To exit: use 'exit'", UserWarning)
    read_by_lines(stack_data.Source)
    warnings_of_cells(shell.compile)
    ultratb.FAST_THRESHOLD = float("inf")  # lines from which on IPython tells less of all frames, as files took long to read
    show, describe = shell.showtraceback, shell.InteractiveTB.structured_traceback

    def with_notes(etype, value, tb=None, *args, **options):
        for one in chained(value):
            BaseException.with_traceback(one, without_kernel(one.__traceback__))
        ultratb.inspect = InspectOnce()
        lines = describe(etype, value, without_kernel(tb), *args, **options)
        more = suggestion(value, tb)
        for i in reversed(range(len(lines) if more else 0)):
            if COLOUR.sub("", lines[i]).endswith(f"{etype.__name__}: {value}"):
                lines[i] += more
                break
        notes = [note for note in getattr(value, "__notes__", None) or () if isinstance(note, str)] + ([] if more else columns(value, tb))
        return lines + [note for note in notes if note not in lines and note not in lines[-1]]

    def members(of, path=""):
        for i, value in enumerate(of.exceptions[:MOST], 1):
            yield f"Sub-exception {path}{i} of {len(of.exceptions)}:"
            if value.__traceback__ is None:
                yield f"{type(value).__name__}: {value}"
            else:
                yield from with_notes(type(value), value, value.__traceback__, tb_offset=0)
            if isinstance(value, group) and path.count(".") < DEEP:
                yield from members(value, f"{path}{i}.")
        if len(of.exceptions) > MOST:
            yield f"… {len(of.exceptions) - MOST} more sub-exceptions …"

    def showtraceback(exc_tuple=None, filename=None, tb_offset=None, exception_only=False, running_compiled_code=False):
        value = (exc_tuple or sys.exc_info())[1]
        if exception_only and isinstance(value, SystemExit):  # without advice to ask for more
            return shell._showtraceback(type(value), value, shell.InteractiveTB.get_exception_only(type(value), value))
        if running_compiled_code and isinstance(value, SyntaxError) and any(not step.tb_next and runs_file(step) for step in steps(value.__traceback__)):
            running_compiled_code = False  # of a script that is run: what compiles it is no frame of anybody's
        groups = [one for one in chained(value) if isinstance(one, group)]
        if groups and not exception_only:
            try:
                lines = with_notes(type(value), value, value.__traceback__, tb_offset=tb_offset)
                for one in groups:
                    lines.extend(members(one))
                return shell._showtraceback(type(value), value, lines)
            except Exception:
                pass  # some exception cannot even be described: IPython knows what to do then
        return show(exc_tuple, filename, tb_offset, exception_only, running_compiled_code)

    shell.InteractiveTB.structured_traceback, shell.showtraceback = with_notes, showtraceback
    shell.show_usage_error = lambda value: shell._showtraceback(type(value), value, [f"UsageError: {value}"])  # and not print it, too
