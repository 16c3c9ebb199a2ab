# Starts IPython's kernel as `python -m ipykernel_launcher` does, with one difference: its IOPub socket holds 100,000
# messages before it throws any away, instead of ZMQ's 1,000. On a busy host no reader is fast enough for 1,000: of 10,000
# prints thousands were lost, the end of the cell among them, to whatever read.
import sys

del sys.path[0]  # "-c" puts the working directory first; IPython does that itself, later
import zmq
from ipykernel.kernelapp import IPKernelApp


class App(IPKernelApp):
    def init_iopub(self, context):
        context.setsockopt(zmq.SNDHWM, 100_000)
        super().init_iopub(context)


App.launch_instance()
