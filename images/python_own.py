# Lets cells replace what modules have, as tests do by mock.patch("os.getpid"), without breaking the kernel: a stream that finds itself in
# another process sends nothing, nor does a session, and the cell never ends. What runs the kernel keeps modules as they were.
import sys
import types

REPLACED = "json", "os", "select", "time"
OURS = "IPython", "asyncio", "ipykernel", "jupyter_client", "tornado", "zmq"


def copied(module):
    copy = types.ModuleType(module.__name__)
    vars(copy).update(vars(module))
    return copy


def keep_own_modules():
    copies = {id(sys.modules[name]): copied(sys.modules[name]) for name in REPLACED}
    packages = [module for name, module in list(sys.modules.items()) if name.partition(".")[0] in OURS]
    for space in globals(), *map(vars, filter(None, packages)):
        space.update({name: copies[id(value)] for name, value in list(space.items()) if id(value) in copies})
