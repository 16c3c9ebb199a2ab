# Lets figures be drawn and compressed with less work, and all of them be seen. Each pixel is as it would be.
import functools
import linecache
import logging
import sys
import threading
from contextlib import contextmanager, suppress
from importlib.machinery import PathFinder

from IPython.core import pylabtools

LEVEL = 4  # of zlib's. Pillow's own takes up to four times as long for a picture of the same size (within 2 %); those below make larger ones
OPAQUE_PNG = "PNG, without alpha where all is opaque"


def print_figure(figure, fmt="png", *args, print_figure=pylabtools.print_figure, **options):
    if fmt not in ("png", "retina", "png2x"):
        return print_figure(figure, fmt, *args, **options)
    from matplotlib.backend_bases import FigureCanvasBase
    from matplotlib.backends.backend_agg import FigureCanvasAgg  # no other one has a level; a figure without a canvas of its own gets it

    if (isinstance(figure.canvas, FigureCanvasAgg) or type(figure.canvas) is FigureCanvasBase) and "pil_kwargs" not in options:
        from PIL import Image

        Image.register_save(OPAQUE_PNG, save_opaque_png)
        options["pil_kwargs"] = {"format": OPAQUE_PNG, "compress_level": LEVEL}
    with ticks_placed_once(figure), axes_measured_once(figure):
        return print_figure(figure, fmt, *args, **options)


def save_opaque_png(image, file, filename):
    # matplotlib's pictures have an alpha channel, which nearly always says nothing and is a quarter of what is to be compressed.
    opaque = image.mode == "RGBA" and image.getchannel("A").getextrema() == (255, 255)
    (image.convert("RGB") if opaque else image).save(file, "png", **image.encoderinfo)


@contextmanager
def ticks_placed_once(figure):
    # matplotlib draws a figure twice, to find out its edges first, and asks each axis eight times meanwhile where its ticks and
    # their labels are: half of a small plot's time. What depends on neither limits nor size is as it was before.
    from matplotlib.axis import XAxis, YAxis

    axes = [axis for part in figure.axes for axis in (part.xaxis, part.yaxis)]
    axes = [axis for axis in axes if type(axis) in (XAxis, YAxis)]  # those of others may place ticks in ways of their own
    if figure.canvas.callbacks.callbacks.get("draw_event") or not hasattr(XAxis, "_update_ticks") or not hasattr(XAxis, "_get_ticklabel_bboxes"):
        axes = []  # somebody changes things between the two, or matplotlib is another one
    placed = {}
    for axis in axes:
        remember_ticks(axis, placed)
    try:
        yield
    finally:
        for axis in axes:
            vars(axis).pop("_update_ticks", None)  # None where a figure was printed while it was
            vars(axis).pop("_get_ticklabel_bboxes", None)


def remember_ticks(axis, placed):
    # Axes may share a formatter, which knows only of the one that asked it last.
    update, find_boxes = axis._update_ticks, axis._get_ticklabel_bboxes
    boxes = None, None, None

    def _update_ticks():
        formatter = axis.major.formatter
        here = axis, *axis.get_view_interval(), *axis.axes.bbox.size
        before, ticks, _ = placed.get(id(formatter), (None, None, None))
        if before != here:
            ticks = update()
            placed[id(formatter)] = here, ticks, formatter
        return ticks

    def _get_ticklabel_bboxes(ticks, renderer=None):
        nonlocal boxes
        here = axis.axes.bbox.extents.tolist()
        if boxes[0] is not ticks or boxes[1] != here:
            boxes = ticks, here, find_boxes(ticks, renderer)
        return boxes[2]

    axis._update_ticks, axis._get_ticklabel_bboxes = _update_ticks, _get_ticklabel_bboxes


@contextmanager
def axes_measured_once(figure):
    # To find its edges, a figure asks all of its parts and then all of its axes; in matplotlib 3.6 these are among the parts.
    find = figure.get_default_bbox_extra_artists
    axes = set(map(id, figure.axes))
    figure.get_default_bbox_extra_artists = lambda: [part for part in find() if id(part) not in axes]
    try:
        yield
    finally:
        vars(figure).pop("get_default_bbox_extra_artists", None)


PICTURES = {"png", "png2x", "retina", "jpg", "jpeg"}


def select_figure_formats(shell, formats, *args, select=pylabtools.select_figure_formats, **options):
    # Drawings and documents (svg, pdf) are for people: a model sees pictures.
    formats = {formats} if isinstance(formats, str) else set(formats)
    select(shell, formats if formats & PICTURES else formats | {"png"}, *args, **options)
    for mime, formatter in shell.display_formatter.formatters.items():
        figure = getattr(sys.modules.get("matplotlib.figure"), "Figure", None)
        with suppress(KeyError):
            if mime != "text/plain":
                formatter.for_type(figure, drawn_or_told(formatter.lookup_by_type(figure)))


def drawn_or_told(draw):
    # A figure is drawn when its cell has ended, and IPython tells where its own formatter failed: of that, what was wrong with the figure
    # is to be known, and that nothing is seen.
    @functools.wraps(draw)
    def draw_or_tell(figure):
        try:
            return draw(figure)
        except Exception as err:
            print(f"A figure is not shown, as it cannot be drawn: {type(err).__name__}: {' '.join(str(err).split())}", file=sys.stderr)
            for line in asked_by_figure(err):
                print(f"It ran: {line}", file=sys.stderr)

    return draw_or_tell


def asked_by_figure(err):
    # The line of the user's own code that drawing had to run, a formatter of ticks for example.
    lines = [
        linecache.getline(step.tb_frame.f_code.co_filename, step.tb_lineno).strip()
        for step in steps(err.__traceback__)
        if not of_kernel(step.tb_frame) and not LIBRARY.match(step.tb_frame.f_code.co_filename)
    ]
    return [line for line in lines if line][-1:]


pylabtools.print_figure, pylabtools.select_figure_formats = print_figure, select_figure_formats
# Of each font that a plot wants, it logs how every font there is compares: a whole result, where somebody logs all there is of his own.
logging.getLogger("matplotlib.font_manager").setLevel(logging.INFO)


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


class Prepares:
    # Finds a module for whoever imports it, and prepares it then.
    def __init__(self, name, prepare):
        self.name, self.prepare = name, prepare

    def find_spec(self, name, path=None, target=None):
        if name != self.name:
            return None
        spec = PathFinder.find_spec(name, path, target)
        if spec is not None and spec.loader is not None:
            run = spec.loader.exec_module
            spec.loader.exec_module = lambda module: (run(module), self.prepare(module))
        return spec


class ShowsWhatAggDraws:
    # After matplotlib.use("Agg"), which is what to write where there is no screen, no plot would be seen. This one lets pyplot's show()
    # show there, too, and its savefig() save what was shown.
    def __init__(self, shell):
        self.shell = shell
        self.closed = None  # the figure that was current when this cell showed all there were
        shell.events.register("post_execute", self.show_rest)

    def prepare(self, pyplot):
        show, save = pyplot.show, pyplot.savefig

        @functools.wraps(show)
        def show_here(*args, **options):
            figure = pyplot.gcf() if pyplot.get_fignums() else None
            try:
                return self.show() if self.draws(pyplot) else show(*args, **options)
            finally:
                if figure is not None and not pyplot.get_fignums():
                    self.closed = figure

        @functools.wraps(save)
        def save_here(*args, **options):
            if pyplot.get_fignums():
                return save(*args, **options)
            if self.closed is None:
                print("plt.savefig: no figure is open, and an empty one is saved. Figures are closed when they are shown, by plt.show() "
                      "or when their cell ends: save a figure in the cell that draws it.", file=sys.stderr)
                return save(*args, **options)
            # Scripts show first and save then. Where show() closes figures, matplotlib would save an empty one, as nobody wants it.
            print("plt.savefig: plt.show() has closed the figure, and what it showed is saved; save before plt.show().", file=sys.stderr)
            return self.closed.savefig(*args, **options)

        pyplot.show, pyplot.savefig = show_here, save_here

    def draws(self, pyplot):
        return threading.current_thread() is threading.main_thread() and pyplot.get_fignums() and pyplot.get_backend().lower() == "agg"

    def show_rest(self):
        self.closed = None
        pyplot = sys.modules.get("matplotlib.pyplot")
        if hasattr(pyplot, "get_fignums") and self.draws(pyplot):
            self.show()

    def show(self):
        from matplotlib_inline import backend_inline, config

        inline = config.InlineBackend.instance(parent=self.shell)
        pylabtools.select_figure_formats(self.shell, inline.figure_formats, **inline.print_figure_kwargs)
        backend_inline.show(close=True)


WINDOWS = "notebook", "nbagg", "widget", "ipympl", "qt", "qt4", "qt5", "qt6", "tk", "gtk", "gtk3", "gtk4", "osx", "macosx", "wx", "webagg"


def show_pictures_for_windows(shell):
    # "%matplotlib notebook" and the like stand in many a notebook, for windows and widgets that nobody would see.
    enable = shell.enable_matplotlib

    def enable_matplotlib(gui=None):
        if gui in (None, "auto") or str(gui).lower() in WINDOWS:
            print("Figures are shown as pictures here, as with %matplotlib inline.", file=sys.stderr)
            gui = "inline"
        return enable(gui)

    shell.enable_matplotlib = enable_matplotlib


def show_here_alone(image_show):
    # image.show() asks the programs of a desktop first, which look for a screen, and say in a later cell that they have found none.
    here = [viewer for viewer in image_show._viewers if type(viewer).__name__ == "IPythonViewer"]
    image_show._viewers[:] = here or image_show._viewers


def show_all_pictures(shell):
    for name, prepare in ("matplotlib.pyplot", ShowsWhatAggDraws(shell).prepare), ("PIL.ImageShow", show_here_alone):
        sys.meta_path.insert(0, Prepares(name, prepare))
