# Lets figures be compressed with less work. At Pillow's own level a picture of the same size (within 2 %) takes up to four times as long.
from IPython.core import pylabtools

LEVEL = 4  # of zlib's; those below it make pictures larger


def print_figure(figure, fmt="png", *args, print_figure=pylabtools.print_figure, **options):
    if fmt in ("png", "retina", "png2x"):
        from matplotlib.backends.backend_agg import FigureCanvasAgg  # no other one has a level

        if isinstance(figure.canvas, FigureCanvasAgg):
            options.setdefault("pil_kwargs", {"compress_level": LEVEL})
    return print_figure(figure, fmt, *args, **options)


pylabtools.print_figure = print_figure


def show_before_drawing(events):
    # What a cell leaves is shown when it has ended. Before, pyplot would draw it for a window that nobody has: twice the time, and
    # twice its warnings. Figures that are shown are closed.
    register = events.register

    def register_first(event, function):
        there = events.callbacks.get(event, ())
        before = len(there)
        register(event, function)
        if len(there) > before and getattr(function, "__name__", "") == "flush_figures":
            there.insert(0, there.pop())

    events.register = register_first
