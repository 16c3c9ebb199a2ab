# Shows all of an error. Of an exception group, IPython 8.5 shows only that it is one, and 8.35 prints it to stderr and sends
# the traceback of some earlier error; older ones leave out an exception's notes.
import builtins
import codeop
import contextlib
import difflib
import inspect
import itertools
import os
import pkgutil
import re
import subprocess
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


SHOWN = 40  # labels, and characters of the name of one
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


class Speaks:
    # What stands before an exception's own class, which may refuse to have others below it.
    __slots__ = ()

    def __init_subclass__(cls, **_):
        pass

    def __str__(self):
        return type(self)._cellblock_said


def speak(value):
    # Some exceptions have code of their own for what they say, and it fails. Nobody gets on with these, ipykernel's reply neither.
    try:
        str(value)
    except Exception as err:
        kind, why = type(value), type(err).__name__
        said = f"<what it says is not known: {kind.__name__}.__str__ raised {why}>"
        with contextlib.suppress(Exception):  # a class may have a class of its own, with other rules
            speaks = type(kind.__name__, (Speaks, kind), {"_cellblock_said": said, "__module__": kind.__module__})
            object.__setattr__(value, "__class__", speaks)  # also of one that is frozen


def suggestion(value, tb):
    # What Python itself adds to such an error where it prints one: ". Did you mean: 'head'?"
    if isinstance(value, (ModuleNotFoundError, FileNotFoundError)):
        return guess(value, tb)
    if not isinstance(value, (AttributeError, ImportError, NameError)):
        return ""
    try:
        if isinstance(value, AttributeError) and inspect.getattr_static(type(value.obj), value.name, None) is not None:
            return ""  # it is there, and says itself why not now, as a Series' dt
        said, whole = str(value), str(traceback.TracebackException(type(value), value, tb, limit=0, compact=True))
    except Exception:
        return ""  # the value's own code has run, to say what it has
    old = sys.version_info < (3, 12) or isinstance(value, ImportError)  # of which newer ones ask the top module alone
    if whole == said and "\n" not in said and old:  # a message of several lines has its own advice
        return guess(value, tb)
    return whole[len(said):] if whole.startswith(said) and len(whole) < len(said) + 300 else ""


NOT_IN_MODULE = re.compile(r"cannot import name '(\w+)' from '([\w.]+)'")  # a name of its own the exception has since 3.12
NEAR = 0.75  # of difflib: what is less like a name is another one
ALIKE = 0.85  # for modules and files, of which most that are not there are simply not there


def guess(value, tb):
    # Of modules and files, Python guesses no names; of others before 3.12 only where it prints an error itself. Which name it was, and of
    # what, it says since 3.10.
    name, near = getattr(value, "name", None), NEAR
    try:
        if isinstance(value, FileNotFoundError):
            if not (isinstance(value.filename, str) and os.path.isabs(value.filename)) and working_directory_is_gone():
                return ". The working directory has been deleted: os.chdir() to another one first"
            folder, name = os.path.split(os.fspath(value.filename))
            with os.scandir(folder or ".") as entries:
                among, near = [entry.name for entry in itertools.islice(entries, GUESSED)], ALIKE
        elif isinstance(value, ModuleNotFoundError):
            among, near = modules_beside(name), ALIKE
        elif isinstance(value, ImportError):
            name, module = NOT_IN_MODULE.match(str(value)).groups()
            among = dir(sys.modules[module])
        elif isinstance(value, AttributeError) and name:
            among = dir(value.obj)
        elif isinstance(value, NameError) and name:
            frame = [step.tb_frame for step in steps(tb)][-1]
            among = {**frame.f_locals, **frame.f_globals, **vars(builtins)}
        else:
            return ""
        among = [one for one in among if isinstance(one, str) and one != name and one.startswith("_") == name.startswith("_")]
        near = difflib.get_close_matches(name, among[:GUESSED], 1, near)
    except Exception:
        return ""  # the object's own code has run, to say what it has, or it has no name
    return f". Did you mean: {near[0]!r}?" if near else ""


def working_directory_is_gone():
    try:
        os.getcwd()
    except FileNotFoundError:
        return True
    return False


def modules_beside(name):
    # Those that can be imported from the same package, or at all.
    package, dot, _ = name.rpartition(".")
    there = pkgutil.iter_modules(sys.modules[package].__path__ if package else None)
    return [package + dot + module.name for module in there] + ([] if package else list(sys.builtin_module_names))


REMOTE = "RemoteTraceback"  # how multiprocessing, concurrent.futures and joblib call what they send of a worker's error


def without_workers(text, compiler):
    # Of the traceback of a worker, what has run there for the user. That of a group is a drawing, and stays as it is.
    text = text.strip("\n").removeprefix('"""').removesuffix('"""').strip("\n")
    blocks, library = [[]], [None]
    for line in text.splitlines():
        if line.startswith("  File "):
            blocks.append([])
            library.append(LIBRARY.match(line.partition('"')[2]))
        if not line.startswith(" "):
            blocks.append([])
            library.append(None)
        blocks[-1].append(line)
    kept = [block for block, left_out in zip(blocks, library) if not left_out]
    lines = [line for block in kept for line in block if not line.startswith("Traceback (most recent")]
    return CELL_FILE.sub(lambda file: "<cell>" if file[0] in getattr(compiler, "_filename_map", ()) else file[0], "\n".join(lines))


def without_echo(value, compiler):
    # Where nothing of the user's has run in a worker, what is sent of its error is often the error itself once more.
    text, said = getattr(value.__cause__, "tb", None), type(value).__name__ + ": " + str(value)
    if type(value.__cause__).__name__.endswith(REMOTE) and isinstance(text, str):
        before, echo, _ = without_workers(text, compiler).rpartition(said)
        if echo and "\n" not in before.strip():
            BaseException.__setattr__(value, "__cause__", None)


CAPTURED = 1500  # characters, of which the last tell what went wrong


def captured(value):
    # What a program has printed that failed or took too long, and its caller kept: capture_output hides why it failed.
    if not isinstance(value, (subprocess.CalledProcessError, subprocess.TimeoutExpired)):
        return ""
    told = ""
    for name in "stdout", "stderr":
        text = getattr(value, name, None)
        text = text.decode("utf-8", "replace") if isinstance(text, bytes) else text
        if isinstance(text, str) and (text := text.strip()):
            end = text[-CAPTURED:]
            told += f"\nIts {name}:{' ' if text.isprintable() else chr(10)}{'… ' if len(end) < len(text) else ''}{end}"
    return told


# What of pandas looks for columns, not for rows: a label that these do not find is the name of one.
FINDS_COLUMNS = {
    "__getitem__", "__delitem__", "__getattr__", "_get_item_cache", "_get_item", "_get_label_or_level_values", "get_grouper", "set_index",
    "normalize_dictlike_arg", "pivot_table", "dropna", "duplicated", "_set_grouper", "query", "eval", "__call__",
}
PARENTS = {"DataFrameGroupBy": "obj", "PlotAccessor": "_parent"}  # what has a DataFrame, and as what
NARROWS = {"pivot_table", "__call__"}  # these go on with some of the columns


FINDS_LABELS = {"__getitem__", "__delitem__", "_get_value"}  # of a Series


def asked_by(step, frame, series):
    # The DataFrame in which this frame of pandas has looked for a column, or that of a group or a plot; or the Series.
    known, does = step.tb_frame.f_locals, step.tb_frame.f_code.co_name
    axis = known.get("axis")
    for one in map(known.get, ("self", "obj", "data")):
        if type(one).__name__ in PARENTS and type(one).__module__.startswith("pandas."):
            one = vars(one).get(PARENTS[type(one).__name__])
        if type(one) is frame:
            found = axis is one.columns if does == "_drop_axis" else does in FINDS_COLUMNS and not (type(axis) is int and axis == 1)
            return one if found else None
        if type(one) is series and does in FINDS_LABELS:
            return one if len(one) and all(type(label) is str for label in one.index[:SHOWN]) else None  # numbers are many, and guessed easily
    return None


def by_levels(step, frame):
    # df.loc["a", 2024], where rows have two labels: what is no row's pandas looks for among the columns in the end, which says nothing.
    indexer = step.tb_frame.f_locals.get("self")
    rows = type(indexer).__name__ == "_LocIndexer" and step.tb_frame.f_code.co_name == "_getitem_lowerdim"
    return rows and type(indexer.obj) is frame and indexer.obj.index.nlevels > 1


def labels(value, tb):
    # What to write instead of a column that is not there, or of a Series' label. Whoever reads the error has often not seen the data.
    pandas = sys.modules.get("pandas")
    frame, series = getattr(pandas, "DataFrame", None), getattr(pandas, "Series", None)
    if frame is None or type(value) not in (KeyError, AttributeError) and type(value).__name__ != "UndefinedVariableError":
        return []
    asked, narrows = None, False
    for step in steps(tb):
        if not LIBRARY.match(step.tb_frame.f_code.co_filename):
            asked, narrows = None, False  # what a user's function does not find, which pandas has called, is something else
        elif by_levels(step, frame):
            asked, narrows = None, True
        elif not narrows and (table := asked_by(step, frame, series)) is not None:
            asked, narrows = table, step.tb_frame.f_code.co_name in NARROWS
    if asked is None:
        return []
    among, whose = (asked.columns, "DataFrame's columns") if type(asked) is frame else (asked.index, "Series' labels")
    try:
        names = [repr(name)[:SHOWN] for name in among[:SHOWN]]
    except Exception:
        return []  # a name's own code has run
    if type(value) is KeyError and value.args and type(value.args[0]) is str and repr(value.args[0])[:SHOWN] in names:
        return []  # pandas has lost it on its way: df.plot("x", "x") makes an index of it, and then looks for the column
    left = len(among) - len(names)
    return [f"The {whose}: {', '.join(names)}" + (f" and {left} more" if left else "")]


def warnings_of_cells(compiler, events):
    # A cell's code is in a file that nobody has ever seen: "/tmp/ipykernel_16/339234766.py:3: UserWarning: …". Its number is not told,
    # as a session counts on over kernels; the line itself stands below. What formatwarning is given is less than there is: of a
    # ResourceWarning, where the object was made is in the message alone. Of many warnings of one line, as a loop has them, the first has it.
    describe, lines = warnings._formatwarnmsg_impl, set()
    events.register("pre_run_cell", lambda *_: lines.clear())

    def in_words(message):
        place = message.filename, message.lineno
        if place in lines and message.line is None:
            message.line = ""
        lines.add(place)
        said, filename = describe(message), message.filename
        return said.replace(filename, "<cell>", 1) if filename in getattr(compiler, "_filename_map", ()) else said

    warnings._formatwarnmsg_impl = in_words


def show_whole_errors(shell):
    # A cell is all that there is: what an open bracket begins is not incomplete, as if more might come, but wrong.
    shell.compile.flags &= ~getattr(codeop, "PyCF_ALLOW_INCOMPLETE_INPUT", 0)
    # After sys.exit(), which the kernel outlives, IPython advises exit(), which ends it.
    warnings.filterwarnings("ignore", "To exit: use 'exit'", UserWarning)
    read_by_lines(stack_data.Source)
    warnings_of_cells(shell.compile, shell.events)
    ultratb.FAST_THRESHOLD = float("inf")  # lines from which on IPython tells less of all frames, as files took long to read
    show, describe = shell.showtraceback, shell.InteractiveTB.structured_traceback
    name_and_say = shell.InteractiveTB.format_exception

    def format_exception(etype, value):
        if type(value).__name__.endswith(REMOTE) and isinstance(getattr(value, "tb", None), str):
            return [f"{type(value).__name__}:\n{without_workers(value.tb, shell.compile)}"]
        said, *notes = name_and_say(etype, value)
        return [said + captured(value), *notes]

    def with_notes(etype, value, tb=None, *args, **options):
        for one in chained(value):
            speak(one)
            without_echo(one, shell.compile)
            BaseException.with_traceback(one, without_kernel(one.__traceback__))
        ultratb.inspect = InspectOnce()
        lines = describe(etype, value, without_kernel(tb), *args, **options)
        more = suggestion(value, tb)
        for i in reversed(range(len(lines) if more else 0)):
            if COLOUR.sub("", lines[i]).endswith(f"{etype.__name__}: {value}"):
                lines[i] += more
                break
        notes = [note for note in getattr(value, "__notes__", None) or () if isinstance(note, str)] + ([] if more else labels(value, tb))
        return lines + [note for note in notes if note not in lines and note not in lines[-1]]

    def members(of, path=""):
        for i, value in enumerate(of.exceptions[:MOST], 1):
            yield f"Sub-exception {path}{i} of {len(of.exceptions)}:"
            speak(value)
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
            lines = shell.InteractiveTB.get_exception_only(type(value), value)
            if value.code not in (None, 0):
                lines = with_notes(type(value), value, value.__traceback__, tb_offset=tb_offset or 1)
            return shell._showtraceback(type(value), value, lines)
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
    shell.InteractiveTB.format_exception = format_exception
    shell.show_usage_error = lambda value: shell._showtraceback(type(value), value, [f"UsageError: {value}"])  # and not print it, too
