# What a kernel consists of when it starts lives as long as it does. Python's garbage collector need not look for garbage in it
# while it is made, nor with every full collection later, which stops a cell for tens of milliseconds.
import gc

gc.disable()  # until collect_from_here_on


def collect_from_here_on():
    gc.freeze()
    gc.enable()
