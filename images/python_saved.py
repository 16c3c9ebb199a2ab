# Saves the variables of a session when its kernel is to be stopped, and, for the case that it dies, now and then while it goes on; and
# loads them into the next one. It runs in the kernel, as one silent expression, and leaves no name behind.
#
# All of them are one pickle: what two variables share, as a model and its optimizer do, they share again. Functions and classes of
# cells are saved with their code, by cloudpickle, which scikit-learn brings along.
import contextlib
import fcntl
import functools
import gc
import io
import itertools
import json
import os
import pickle
import random
import re
import resource
import select
import signal
import sys
import time
import types
import warnings

MOST_TOLD = 20  # names of what is not saved
LONGEST = 60  # characters of a name, and of a type
LONGEST_WHY = 100  # of why one cannot be loaded
TRIED = 100_000  # bytes of a variable that is loaded as a trial
LONGEST_ASIDE = 60  # seconds in which a process of its own must have saved them
NAME = "cellblock-saves"  # of that process, by which the shim knows it
LONGEST_BEGINNING = 5  # seconds until it is on its way, less than the server waits
# What IPython names by itself: the last results and inputs.
ITS_OWN = re.compile(r"__+|__.*__|_i{0,3}|_i?\d+|_[iod]h|_exit_code|In|Out")


def shell():
    return sys.modules["IPython"].get_ipython()


def place():
    # The next kernel has the same folder, under the same name.
    return os.path.join(shell().starting_dir, ".cellblock-variables")


def variables():
    space, hidden, absent = shell().user_ns, shell().user_ns_hidden, object()
    return {
        n: v for n, v in list(space.items())
        if type(n) is str and v is not space and not ITS_OWN.fullmatch(n) and hidden.get(n, absent) is not v
    }


class Space:
    # Stands for the names of the session, in which functions of cells look up what they use.
    def __reduce__(self):
        return eval, ("__import__('IPython').get_ipython().user_ns",)


def pickler_class():
    for module in ("cloudpickle", "joblib.externals.cloudpickle"):
        try:
            return __import__(module, fromlist=["Pickler"]).Pickler
        except ImportError:
            pass
    return pickle.Pickler


def pickler(file):
    globals_of_cells, space, kind = shell().user_ns, Space(), pickler_class()

    class Saving(kind):
        def reducer_override(self, value):
            reduced = super().reducer_override(value) if hasattr(kind, "reducer_override") else NotImplemented
            if type(value) is types.FunctionType and value.__globals__ is globals_of_cells and type(reduced) is tuple:
                make, (code, _, *others), state, *rest = reduced
                state[1]["__globals__"] = {}  # a copy of what it uses, which goes its own way, or cannot be pickled
                return (make, (code, space, *others), state, *rest)
            if type(value) is functools.cached_property:  # of some Pythons, which have a lock in it
                return type(value), (value.func,), {"attrname": value.attrname}
            if reduced is NotImplemented and getattr(value, "__module__", None) == "__main__" and hasattr(value, "__qualname__"):
                return self.named(value)
            return reduced

        def named(self, value):
            # What is pickled as the name that it had in a cell is not there when that is looked up.
            if type(value) is functools._lru_cache_wrapper:
                bounds = value.cache_parameters()
                return type(value), (value.__wrapped__, bounds["maxsize"], bounds["typed"], functools._CacheInfo), vars(value)
            if type(value) in getattr(self, "dispatch_table", ()):
                return NotImplemented  # a classmethod has a name, too, and is not pickled by it
            if type(value.__reduce_ex__(5)) is str:
                raise pickle.PicklingError("it is pickled by name")
            return NotImplemented

    return Saving(file, protocol=5)


class TooMuch(Exception):
    pass


class Trial(io.BytesIO):
    # Takes so much, and no more.
    def __init__(self, most):
        super().__init__()
        self.left = most

    def write(self, data):
        self.left -= memoryview(data).nbytes
        if self.left < 0:
            raise TooMuch
        return super().write(data)


class Nowhere:
    def write(self, data):
        pass


class Trying(pickle.Unpickler):
    # What cloudpickle loads of a class that is there already, it sets in that: a trial makes another one.
    def find_class(self, module, name):
        found = super().find_class(module, name)
        if name in ("_make_skeleton_class", "_make_skeleton_enum"):
            return lambda *args: found(*args[:-2], None, *args[-1:])  # without the id by which it finds it
        return found


loaded = []  # by trials: if it were given up at once, it might end what it stands for, which a file or a process of the user's may be


def trial(value):
    # Many an object that can be pickled cannot be loaded, such as exceptions with arguments of their own: what is small is tried.
    file = Trial(TRIED)
    with contextlib.suppress(TooMuch):
        pickler(file).dump(value)
        file.seek(0)
        loaded.append(Trying(file))
        loaded[-1].load()


def dry_run(value):
    pickler(Nowhere()).dump(value)


def about(name, value, error):
    cls = type(value)
    why = "" if name_of(cls) in str(error) else f": {error}"  # of something in it
    return f"{name[:LONGEST]} ({type_name(cls)[:LONGEST]}{why[:LONGEST]})"


def write(file, cell, saved, left):
    # The first line is for the server.
    file.write(json.dumps({"cell": cell}).encode() + b"\n")
    head = {"python": sys.implementation.cache_tag, "names": list(saved), "left": left[:MOST_TOLD], "more": len(left[MOST_TOLD:]), "began": time.time()}
    file.write(json.dumps(head).encode() + b"\n")
    saving = pickler(file)
    saving.dump({"folder": os.getcwd(), "path": sys.path, "environ": environ_changed()})
    for value in saved.values():
        saving.dump(value)
    saving.dump(random_states())


def environ_changed():
    # What the kernel has set itself the next one sets likewise.
    began = {}
    with contextlib.suppress(OSError), open("/proc/self/environ", "rb") as file:
        began = dict(os.fsdecode(one).partition("=")[::2] for one in file.read().split(b"\0") if one)
    return {name: os.environ.get(name) for name in {*began, *os.environ} if os.environ.get(name) != began.get(name)} if began else {}


def random_states():
    numpy = sys.modules.get("numpy.random")
    return {"random": random.getstate(), "numpy": numpy and numpy.get_state()}


def divide(mine, attempt):
    good, left = {}, []
    for name, value in mine.items():
        try:
            attempt(value)
            good[name] = value
        except Exception as error:
            left.append(about(name, value, error))
    return good, left


def save(cell):
    for name in ".checkpoint", ".loading":  # whoever still writes the one gives up
        discard(place() + name)
    new = place() + ".new"
    with discarded(new):
        return Answer(saved=save_as(new, lambda: open(new, "wb"), cell))


def save_as(new, opened, cell):
    with its_builtins():
        saved, left = divide(variables(), trial)
    if not saved:
        discard(place())
        return 0
    try:
        with opened() as file:
            write(file, cell, saved, left)
    except OSError:
        raise  # the disk is full, say
    except Exception:
        saved, more = divide(saved, dry_run)
        with opened() as file:
            write(file, cell, saved, left + more)
    os.replace(new, place())
    return len(saved)


def checkpoint(cell, most):
    # A copy of this process does it: the kernel goes on, nothing changes meanwhile, and what goes wrong there is not the kernel's.
    new, took = place() + ".checkpoint", time_of_last()
    lock = os.open(new, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if os.fstat(lock).st_size:  # the one before has failed, or was killed
            took = LONGEST_ASIDE
        fail(lock)  # until it succeeds
        with warnings.catch_warnings(), without_interrupts():
            warnings.simplefilter("ignore")  # of threads, which the copy has none of
            child = os.fork()
            if not child:
                aside(lambda: save_aside(new, lock, cell, most))
        wait_for(child)
    except BlockingIOError:
        pass  # the one before does it still
    finally:
        os.close(lock)
    return Answer(took=took)


def wait_for(child):
    # What a library does in a new process may never end: then the server interrupts this one.
    try:
        os.waitpid(child, 0)
    except ChildProcessError:
        pass  # where cells have a handler of SIGCHLD, it is theirs
    except BaseException:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        raise


def aside(work):
    # In a forked process, which never returns. Its parent's only child ends soon, so that nobody here has to wait for this one: when that
    # has let go of its files, or has not come so far.
    try:
        begun, begins = os.pipe()
        child = os.fork()
        if not child:
            return work()
        os.close(begins)
        if not select.select([begun], [], [], LONGEST_BEGINNING)[0]:
            os.kill(child, signal.SIGKILL)
    finally:
        os._exit(0)


@contextlib.contextmanager
def without_interrupts():
    # They are meant for cells. One that came to the copy, before it is on its way, would make a second kernel of it.
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)


def save_aside(new, lock, cell, most):
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    signal.alarm(LONGEST_ASIDE)  # for one that waits for a lock that a thread had
    let_go_of_files(lock)
    about_itself("comm", NAME)
    about_itself("oom_score_adj", "1000")  # this one first
    os.nice(19)
    gc.disable()  # it would touch, and so copy, every object
    sys.stdout = sys.stderr = open(os.devnull, "w")
    disk = os.fstatvfs(lock)
    most = min(most, disk.f_bavail * disk.f_frsize // 10)  # others have it, too
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    if soft == resource.RLIM_INFINITY or most < soft:
        resource.setrlimit(resource.RLIMIT_FSIZE, (most, hard))

    def opened():
        os.lseek(lock, 0, os.SEEK_SET)
        os.truncate(lock, 0)
        return open(lock, "wb", closefd=False)

    try:
        if not save_as(new, opened, cell):
            os.truncate(lock, 0)
    except BaseException:
        fail(lock)


def about_itself(what, text):
    with contextlib.suppress(OSError), open(f"/proc/self/{what}", "w") as file:
        file.write(text)


def fail(lock):
    # Tells the next one so.
    os.truncate(lock, 0)
    os.pwrite(lock, b"-", 0)


def let_go_of_files(but):
    # They are the kernel's: who reads from a pipe that it closes must see its end, and no buffer is written twice. What is read from them
    # by what is pickled fails.
    null = os.open(os.devnull, os.O_WRONLY)
    for fd in map(int, os.listdir("/proc/self/fd")):
        if fd not in (null, but):
            os.dup2(null, fd)


def time_of_last():
    # How long it took to save what is saved, in seconds.
    with contextlib.suppress(OSError, ValueError, KeyError), open(place(), "rb") as file:
        file.readline()
        return os.fstat(file.fileno()).st_mtime - json.loads(file.readline())["began"]
    return 0


def discard(path):
    with contextlib.suppress(FileNotFoundError):
        os.unlink(path)


@contextlib.contextmanager
def discarded(path):
    # A file that is not there any more in the end, under this name.
    try:
        yield
    finally:
        discard(path)


def load():
    # The file goes before it is read: a kernel that dies of it is not the first of many. It comes back for the case that this kernel dies
    # later, but not where it could not be read.
    loading = place() + ".loading"
    os.replace(place(), loading)
    with discarded(loading):
        with open(loading, "rb") as file:
            head = read_head(file)
            if head["python"] != sys.implementation.cache_tag:
                return Answer(why="they were saved by another Python")
            taken = take(file, head)
        if not taken["why"]:
            os.replace(loading, place())
        return Answer(**taken)


def read_head(file):
    # In what the first versions saved nothing was before it.
    first = json.loads(file.readline())
    return first if "names" in first else json.loads(file.readline())


def take(file, head):
    names, values, lost, why = head["names"], {}, {}, ""
    try:
        with its_builtins():
            read(file, names, values, lost)
            show_figures()
    except BaseException as error:  # what a user's class raises, too, or an interrupt
        why = f"{name_of(type(error))}: {error}"[:300]
    for name in names:
        if name not in values:
            shell().user_ns.pop(name, None)
    if lost and not values:
        why = next(iter(lost.values()))[:300]
    left = list(about_lost([n for n in names if n not in values], lost))
    never = "what cells had set in libraries"
    return {"never": never, "back": len(values), "left": left[:MOST_TOLD] + head["left"], "more": head["more"] + len(left[MOST_TOLD:]), "why": why}


def about_lost(names, lost):
    last = None
    for name in names:
        why = lost.get(name)  # those behind which nothing could be read have none
        yield name[:LONGEST] + (f" ({'the same' if why == last else why[:LONGEST_WHY]})" if why else "")
        last = why


def read(file, names, values, lost):
    # Nothing of the first attempt stays for the second: there is not the memory for both.
    start = file.tell()
    with contextlib.suppress(Exception):
        return read_with(pickle.Unpickler(file), names, values)
    while values:
        shell().user_ns.pop(values.popitem()[0], None)
    gc.collect()
    file.seek(start)
    found, reading = {}, Careful(file)
    try:
        read_with(reading, names, found)
    finally:
        for name, value in found.items():
            if why := lost_in(value, reading):
                lost[name] = why
            else:
                values[name] = value


def read_with(loading, names, values):
    # What is read later may be made by functions that look up what was read before.
    go_where_it_was(loading.load())
    for name in names:
        values[name] = shell().user_ns[name] = loading.load()
    with contextlib.suppress(EOFError):  # which earlier versions did not save
        go_on_at_random(loading.load())


def go_on_at_random(states):
    random.setstate(states["random"])
    if states["numpy"]:
        __import__("numpy.random").random.set_state(states["numpy"])


def show_figures():
    # IPython knows how to show a figure once pyplot has made one, and those that are back it has not made.
    pyplot = sys.modules.get("matplotlib.pyplot")
    if pyplot is not None:
        pyplot.switch_backend(pyplot.get_backend())


@contextlib.contextmanager
def its_builtins():
    # cloudpickle gives each function's globals others.
    space = shell().user_ns
    own = space["__builtins__"]
    try:
        yield
    finally:
        space["__builtins__"] = own


def go_where_it_was(state):
    missing = [p for p in state["path"] if p not in sys.path]
    first = list(itertools.takewhile(missing.__contains__, state["path"]))
    sys.path[:] = first + sys.path + missing[len(first):]
    for name, value in state.get("environ", {}).items():
        if value is None:
            os.environ.pop(name, None)
        else:
            os.environ[name] = value
    if os.path.isdir(state["folder"]):
        os.chdir(state["folder"])
