package kernelstest

import "strings"

// testFigures draws in all formats that IPython has, and as PNG beside those that only people can read. Those of PNG are made with less work than Pillow's own level, unless the
// user has a level of his own.
func testFigures(f *suite) {
	b := f.launch()
	b.python("import matplotlib.pyplot") // which may complain of where it is, and say that it looks for fonts
	b.want(`
import base64, matplotlib.pyplot as plt
from matplotlib_inline.backend_inline import set_matplotlib_formats
from matplotlib.figure import Figure
def show(fmt, figure=None, **options):
    set_matplotlib_formats(fmt, **options)
    data, _ = get_ipython().display_formatter.format(figure or plt.gcf())
    for mime, shown in data.items():
        if mime == "image/png":
            raw = base64.b64decode(shown if isinstance(shown, str) else base64.b64encode(shown))
            print(mime, raw.partition(b"IDAT")[2][:2].hex())
        elif mime != "text/plain":
            print(mime)
_ = plt.plot([1, 2])
show("png"); show("retina"); show("svg"); show("jpeg"); show("pdf"); show("png", pil_kwargs={"compress_level": 9}); plt.close("all")
of_no_backend = Figure(); of_no_backend.subplots(); show("png", of_no_backend)`,
		"image/png 785e\nimage/png 785e\nimage/svg+xml\nimage/png 785e\nimage/jpeg\nimage/png 785e\napplication/pdf\nimage/png 78da\nimage/png 785e")
}

// testAgg wants one picture of each figure that a cell leaves, in that cell.
func testAgg(f *suite) {
	b := f.launch()
	b.python("import matplotlib; matplotlib.use('Agg')")
	for code, want := range map[string]int{
		"plt.plot([1, 3, 2]); plt.show()":                      1,
		"for n in (1, 2): plt.figure(); plt.plot([n])":         2,
		"plt.plot([1]); plt.savefig('saved.png'); plt.close()": 0,
	} {
		if got := b.shown("import matplotlib.pyplot as plt\n" + code); len(got) != want {
			f.Errorf("%d pictures, want %d of %s", len(got), want, code)
		}
	}
}

// testSavedAfterShow wants in the file what was shown, once, and after the cell a word that there is no figure any more.
func testSavedAfterShow(f *suite) {
	b := f.launch()
	b.python("import matplotlib, matplotlib.pyplot as plt")
	b.python(`def dark():  # how much of the file is ink
    return (plt.imread("saved.png")[:, :, :3].min(axis=2) < 0.5).mean() > 0.1`)
	for _, backend := range []string{"%matplotlib inline", "plt.switch_backend('agg')"} {
		for code, want := range map[string]string{
			"plt.show(); plt.savefig('saved.png'); print(dark())":                                               "png True",
			"plt.savefig('saved.png'); plt.show(); print(dark())":                                               "png True",
			"plt.show(); plt.figure(); plt.savefig('saved.png'); print(dark()); plt.close()":                    "png False",
			"plt.show(); plt.savefig('saved.png', dpi=20); print(plt.imread('saved.png').shape[0])":             "png 96",
			"plt.show(); plt.plot([1]); plt.show(); plt.savefig('saved.png'); print(dark(), plt.get_fignums())": "png png False []",
		} {
			b.python(backend)
			got := b.shown("plt.fill([0, 1, 1, 0], [0, 0, 1, 1], color='black')\n" + code)
			if got := strings.Join(got, " "); got != want {
				f.Errorf("%s, %s: %s, want %s", backend, code, got, want)
			}
		}
		b.python("plt.fill([0, 1, 1, 0], [0, 0, 1, 1], color='black')")
		b.want("import contextlib, io\nwith contextlib.redirect_stderr(io.StringIO()) as said: plt.savefig('saved.png')\nplt.close(); print(dark(), 'no figure is open' in said.getvalue())", "False True")
	}
}

// testWindows wants pictures where code asks for what only a screen, or a notebook's page, could show.
func testWindows(f *suite) {
	b := f.launch()
	for _, gui := range []string{"notebook", "widget", "Qt", "tk", ""} {
		got := b.shown("%matplotlib " + gui + "\nimport matplotlib.pyplot as plt\nplt.plot([1, 3, 2]); plt.show()")
		if len(got) == 0 || got[len(got)-1] != "png" {
			f.Errorf("%q: %q", gui, got)
		}
	}
}

// testFigurePixels draws what places its ticks in various ways: as matplotlib does, and with what kernels spare it.
func testFigurePixels(f *suite) {
	b := f.launch()
	b.python("import matplotlib, mpl_toolkits.mplot3d")
	b.python(figurePixels)
	for _, draw := range strings.Fields(`shared_axes_of_unlike_widths offsets_and_titles above layout dates scales heat second_axis_and_inset
		three_dimensions_and_angles changed_while_drawn transparent parts_of_figures small`) {
		if got := strings.TrimSpace(b.python("compare(" + draw + ")")); got != "alike" { // one by one: all of them take long
			f.Errorf("%s: %s", draw, got)
		}
	}
	b.want("print(*less)", "True True")
}

// figurePixels compares figures as matplotlib draws them with ours, and notes of the last whether ours has fewer bytes, and takes a quarter of
// the questions for ticks.
const figurePixels = `
import io, datetime, warnings
import numpy as np, matplotlib.pyplot as plt
from IPython.core import pylabtools
from matplotlib.ticker import FuncFormatter, MaxNLocator
from PIL import Image
warnings.simplefilter("ignore")
ours = pylabtools.print_figure
plain = ours.__kwdefaults__["print_figure"]

class Counted(MaxNLocator):
    asked = 0
    def __call__(self):
        Counted.asked += 1
        return super().__call__()

def small():
    plt.plot([1, 3, 2])
    plt.gca().xaxis.set_major_locator(Counted())
def shared_axes_of_unlike_widths():
    _, axes = plt.subplots(2, 3, sharex=True, gridspec_kw={"width_ratios": [1, 5, 0.4]})
    for i, ax in enumerate(axes.flat):
        ax.plot([0, 1e6], [10.0 ** i, 3e-7])
def offsets_and_titles():
    plt.plot([1e9, 1e9 + 1], [1e-9, 2e-9])
    plt.title("above the offset"); plt.ylabel("y"); plt.xlabel("x")
def above():
    ax = plt.gca()
    ax.plot([1, 2e7])
    ax.xaxis.tick_top(); ax.xaxis.set_label_position("top"); ax.set_xlabel("x"); ax.set_title("T")
    ax.twinx().plot([1e5, 3e9]); ax.twiny().plot([1, 200], [1, 2])
def layout():
    _, axes = plt.subplots(2, 2, constrained_layout=True)
    for ax in axes.flat:
        ax.plot([1, 2e5]); ax.set_ylabel("two\nlines")
def dates():
    plt.plot([datetime.date(2024, month, 1) for month in range(1, 13)], range(12)); plt.gcf().autofmt_xdate()
def scales():
    plt.loglog([1, 1e3, 1e7], [1e-4, 1, 1e9]); plt.grid(True, which="both")
def heat():
    plt.imshow(np.arange(100).reshape(10, 10)); plt.colorbar()
def second_axis_and_inset():
    ax = plt.gca()
    ax.plot(range(361), range(361)); ax.secondary_xaxis("top", functions=(np.deg2rad, np.rad2deg))
    ax.inset_axes([0.5, 0.1, 0.4, 0.3]).plot([3e6, 1])
def three_dimensions_and_angles():
    fig = plt.figure()
    fig.add_subplot(121, projection="3d").plot([1, 2], [3, 4], [5, 6])
    fig.add_subplot(122, projection="polar").plot([0, 6], [0, 1])
def changed_while_drawn():
    ax = plt.gca()
    ax.plot([1, 2])
    ax.figure.canvas.mpl_connect("draw_event", lambda _: ax.tick_params(axis="x", rotation=45, labelsize=20))
def transparent():
    plt.plot([1, 2]); plt.gcf().patch.set_alpha(0.3); plt.gca().patch.set_alpha(0)
def parts_of_figures():
    for part in plt.figure(figsize=(8, 4)).subfigures(1, 2):
        ax, _ = part.subplots(2, 1, sharex=True)
        ax.plot([1, 2]); ax.xaxis.set_major_formatter(FuncFormatter(lambda x, _: f"<{x:.2f}>")); ax.minorticks_on()

def drawn(draw, print_figure):
    draw()
    pictures = [print_figure(plt.gcf()) for _ in range(2)]
    plt.close("all")
    return pictures, [(image.size, image.convert("RGBA").tobytes()) for image in map(Image.open, map(io.BytesIO, pictures))]

def compare(draw):
    global less
    Counted.asked = 0
    before, want = drawn(draw, plain)
    times, Counted.asked = Counted.asked, 0
    after, got = drawn(draw, ours)
    less = sum(map(len, after)) < 0.95 * sum(map(len, before)), Counted.asked <= 0.25 * times
    print("alike" if got == want else "different")
`
