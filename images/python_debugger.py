# Leaves the debugger out. Nobody here can attach one, and loading it takes a quarter of the start and 12 MB. It is out of
# reach only while the kernel is imported: a cell may import debugpy all the same.
import contextlib
import sys


@contextlib.contextmanager
def without(module):
    hidden = module not in sys.modules
    if hidden:
        sys.modules[module] = None  # whoever imports it is told that there is none
    try:
        yield
    finally:
        if hidden:
            sys.modules.pop(module, None)


with without("debugpy"), contextlib.suppress(ImportError):
    import ipykernel.debugger


def expect_no_debugger(kernel):
    # Else the kernel's first words would be that it has none.
    kernel.debugpy_stream = None
    kernel.log.addFilter(lambda record: not str(record.msg).startswith("debugpy_stream undefined"))
