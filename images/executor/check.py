"""Imports everything that the image promises and draws one plot: run while the image is built, so that a broken image
is never tagged, and the fonts' cache is made on the way."""

import importlib

NAMES = """
ipykernel numpy numpy.testing scipy.stats scipy.optimize scipy.signal numexpr bottleneck sympy
pandas pandas.testing openpyxl xlsxwriter h5py sqlalchemy sqlite3 tabulate jinja2 yaml
sklearn.datasets sklearn.ensemble sklearn.linear_model sklearn.model_selection sklearn.utils.estimator_checks
statsmodels.api statsmodels.formula.api networkx
matplotlib.pyplot seaborn PIL.Image
requests bs4 lxml.html html5lib docx pypdf tqdm dateutil zoneinfo pip
""".split()

for name in NAMES:
    importlib.import_module(name)

import matplotlib.pyplot as plt
import sklearn.datasets

frame = sklearn.datasets.load_iris(as_frame=True).frame
assert frame.shape == (150, 5), frame.shape
frame.plot.scatter(x=0, y=1, title="äöü αβγ")
plt.savefig("/dev/null", format="png")
