# Describes the variables of a session. It runs in the kernel, as one silent expression, and must leave nothing behind.
#
# It calls no method of an object whose class the user may have written: such an object's __repr__, __len__ or __class__ may
# run for ever, change things or fail. What it knows it knows by the exact type. Types are asked for their names past their
# metaclasses, for the same reason.
import collections
import itertools
import sys
import time
import types

MOST = 200  # variables; the newest are described
MOST_IMPORTED = 20  # of those, names that came with a module's others, as by a star
LONGEST = 200  # characters of a module's name
COLUMNS = 50  # of one table
PREVIEW = 80  # characters
SECONDS = 1.0  # in all

bases_of = type.__dict__["__bases__"].__get__
vars_of = types.ModuleType.__dict__["__dict__"].__get__
plain = {bool, int, float, complex, type(None), type(...), range, slice}
mappings = {dict, collections.OrderedDict, collections.defaultdict, collections.Counter}
containers = {list: "[]", tuple: "()", set: "{}", frozenset: "{}", collections.deque: "[]", **dict.fromkeys(mappings, "{}")}
# Libraries whose objects tell their shape without running users' code.
shaped = {"torch", "tensorflow", "jax", "jaxlib", "polars", "pyarrow", "scipy", "xarray", "h5py"}


def found(module, *names):
    # Attributes of a module that the user has imported. Importing it for him would take time and memory.
    loaded = sys.modules.get(module)
    return [getattr(loaded, name, None) for name in names]


def clip(text, most=PREVIEW):
    return text if len(text) <= most else text[: most - 1] + "…"


class Describer:
    def __init__(self):
        np, pd = sys.modules.get("numpy"), sys.modules.get("pandas")
        self.array = getattr(np, "ndarray", None)
        self.scalars = set(getattr(np, "sctypeDict", {}).values())
        self.frame, self.series, self.index = found("pandas", "DataFrame", "Series", "Index")
        self.simple = plain | self.scalars
        for module, *names in (("datetime", "datetime", "date", "time", "timedelta"), ("decimal", "Decimal"), ("fractions", "Fraction"),
                               ("uuid", "UUID"), ("pathlib", "PosixPath"), ("pandas", "Timestamp", "Timedelta")):
            self.simple.update(t for t in found(module, *names) if t is not None)
        self.simple.discard(getattr(np, "object_", None))
        self.simple.discard(getattr(np, "void", None))

    def short(self, value, depth=1):
        # A few characters for a value; its type alone where no more is safe.
        cls = type(value)
        if cls is int and value.bit_length() > 256:
            return f"int of {value.bit_length()} bits"
        if cls is float and not depth:
            return f"{value:.6g}"
        if cls in self.simple:
            return clip(repr(value.item() if cls in self.scalars else value))
        if cls in (str, bytes, bytearray):
            return clip(repr(value[:PREVIEW]))
        if cls in containers and depth:
            return self.items(value, cls)
        if cls in containers:
            return f"<{cls.__name__} of {len(value)}>" if len(value) else containers[cls]
        if cls is types.ModuleType:
            return f"<module {clip(str(vars(value).get('__name__', '?')), 40)}>"
        return f"<{clip(type_name(cls), 60)}>"

    def items(self, value, cls, count=None):
        # The first of a container's items, or of count that the few here stand for.
        left, right = containers[cls]
        texts, size = [], 0
        for item in itertools.islice(value.items() if cls in mappings else value, 11):
            text = self.short(item[0], 0) + ": " + self.short(item[1], 0) if cls in mappings else self.short(item, 0)
            size += len(text) + 2
            if size > PREVIEW - 8:
                break
            texts.append(text)
        if len(texts) < (len(value) if count is None else count):
            texts.append("…")
        return left + ", ".join(texts) + right

    def describe(self, value):
        cls = type(value)
        about = {"type": clip(type_name(cls), 80)}
        if cls in self.simple:
            about["preview"] = self.short(value)
        elif cls in containers or cls in (str, bytes, bytearray):
            about.update(length=len(value), bytes=sys.getsizeof(value), preview=self.short(value))
        elif cls is types.ModuleType:
            about["preview"] = clip(str(vars(value).get("__name__", "")))
        elif cls is types.FunctionType:
            about["preview"] = self.signature(value)
        elif issubclass(cls, type):
            about["preview"] = clip(f"class {name_of(value)}({', '.join(name_of(base) for base in bases_of(value))})")
        elif self.array is not None and issubclass(cls, self.array):
            self.add_array(value, about)
        elif cls is self.frame:
            self.add_frame(value, about)
        elif cls is self.series:
            about.update(length=len(value), dtype=clip(str(value.dtype)), bytes=int(value.memory_usage(index=False)))
            about["preview"] = self.items(value.iloc[:10].tolist(), list, len(value))
        elif self.index is not None and issubclass(cls, self.index) and library(cls) == "pandas":
            about.update(length=len(value), dtype=clip(str(value.dtype)))
            about["preview"] = self.items(value[:10].tolist(), list, len(value))
        elif library(cls) in shaped:
            self.add_shape(value, about)
        return about

    def add_array(self, value, about):
        # Through the class: a subclass may have replaced the attributes.
        get = lambda name: self.array.__dict__[name].__get__(value)
        dtype = get("dtype")
        about.update(shape=[int(n) for n in get("shape")], dtype=clip(str(dtype)), bytes=int(get("nbytes")))
        if type(value) is self.array and dtype.kind in "biufcSUMm":
            about["preview"] = self.items(get("flat")[:10].tolist(), list, get("size"))

    def add_frame(self, value, about):
        names, dtypes = value.columns[:COLUMNS].tolist(), value.dtypes.iloc[:COLUMNS].tolist()
        about.update(
            shape=[len(value.index), len(value.columns)],
            bytes=int(value.memory_usage(index=False).sum()),
            columns=[{"name": clip(n if type(n) is str else self.short(n), 60), "dtype": clip(str(d), 40)} for n, d in zip(names, dtypes)],
        )

    def add_shape(self, value, about):
        shape, dtype = getattr(value, "shape", None), getattr(value, "dtype", None)
        if isinstance(shape, tuple) and all(type(n) is int for n in shape):
            about["shape"] = list(shape)
        if dtype is not None:
            about["dtype"] = clip(str(dtype))

    def signature(self, function):
        code = function.__code__
        names = list(code.co_varnames)
        count = code.co_argcount + code.co_kwonlyargcount
        shown = names[:count]
        if code.co_kwonlyargcount and not code.co_flags & 4:
            shown.insert(code.co_argcount, "*")
        if code.co_flags & 4:
            shown.insert(code.co_argcount, "*" + names[count])
            count += 1
        if code.co_flags & 8:
            shown.append("**" + names[count])
        return clip(f"{code.co_name}({', '.join(shown)})")


def given(module):
    # What a module gives to who imports all of it.
    loaded = sys.modules.get(module)
    space = vars_of(loaded) if issubclass(type(loaded), types.ModuleType) else {}
    names = space.get("__all__")
    return {n: space[n] for n in names if type(n) is str and n in space} if type(names) in (list, tuple) else space


def sources(value):
    # The modules that a function, a class or a library's object may have come from.
    cls = type(value)
    try:
        if cls in (types.FunctionType, types.BuiltinFunctionType):
            module = value.__module__
        else:
            module = module_of(value if issubclass(cls, type) else cls)
    except AttributeError:
        return []  # a type may have none
    if type(module) is not str or len(module) > LONGEST or module in ("__main__", "builtins"):
        return []
    return [module, *(module[:i] for i, c in enumerate(module) if c == ".")]


def divide(variables, deadline):
    # What the user has made himself, and what he has by the name that it has in its module. A module that gave him a function or
    # an object of its own gave him its constants and modules, too. What there is no time to look at is his own.
    absent, spaces, gave = object(), {}, set()
    for name, value in variables:
        if time.monotonic() > deadline:
            return variables, []
        for module in sources(value):
            if module not in spaces:
                spaces[module] = given(module)
            if spaces[module].get(name, absent) is value:
                gave.add(module)
    came = {(name, id(value)) for module in gave for name, value in list(spaces[module].items())}
    own, imported = [], []
    for name, value in variables:
        (imported if (name, id(value)) in came else own).append((name, value))
    return own, imported


def describe_all():
    shell = sys.modules["IPython"].get_ipython()
    hidden, absent = shell.user_ns_hidden, object()
    mine = [(n, v) for n, v in list(shell.user_ns.items()) if type(n) is str and not n.startswith("_") and hidden.get(n, absent) is not v]
    begun = time.monotonic()
    own, imported = divide(mine, begun + SECONDS / 2)
    newest = list(itertools.islice(itertools.chain(reversed(own), reversed(imported[-MOST_IMPORTED:])), MOST))
    describer, deadline, described = Describer(), begun + SECONDS, []
    for name, value in newest:
        if time.monotonic() > deadline:
            break
        try:
            about = describer.describe(value)
        except Exception as error:
            about = {"type": clip(type_name(type(value)), 80), "preview": f"not described: {name_of(type(error))}"}
        described.append({"name": clip(name, 80), **about})
    return Answer(variables=described[::-1], more=len(mine) - len(described))
