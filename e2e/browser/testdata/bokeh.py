# What Bokeh's Python library writes for notebooks, in the outputs, types and order in which it does, around the BokehJS that lies in
# the working directory.
import json
import sys

from IPython.display import HTML, display

LOAD, EXEC = "application/vnd.bokehjs_load.v0+json", "application/vnd.bokehjs_exec.v0+json"


def _object(name, id, **attributes):
    return {"type": "object", "name": name, "id": id, "attributes": attributes}


def _document():
    """A figure with a line, as a document of Bokeh's."""
    data = {"type": "map", "entries": [["x", [1, 2, 3]], ["y", [4, 6, 5]]]}
    line = _object("GlyphRenderer", "p1010", data_source=_object("ColumnDataSource", "p1011", data=data), view=_object("CDSView", "p1012"),
                   glyph=_object("Line", "p1013", x={"type": "field", "field": "x"}, y={"type": "field", "field": "y"}, line_color="#ff0000", line_width=9))
    figure = _object("Figure", "p1001", width=400, height=250, x_range=_object("DataRange1d", "p1002"), y_range=_object("DataRange1d", "p1003"),
                     title=_object("Title", "p1004", text="a plot of Bokeh's"), renderers=[line],
                     left=[_object("LinearAxis", "p1005")], below=[_object("LinearAxis", "p1006")])
    return {"d1": {"version": "3.10.0", "title": "Bokeh Application", "roots": [figure]}}


def _embed(place, function):
    """The script that draws the document, as soon as there is a library."""
    items = [{"docid": "d1", "roots": {"p1001": place}, "root_ids": ["p1001"]}]
    return """(function (root) {
  function draw() { void root.Bokeh.embed.%s(%s, %s); }
  if (root.Bokeh !== undefined) { draw(); return; }
  let attempts = 0;
  const timer = setInterval(() => {
    if (root.Bokeh !== undefined || ++attempts > 100) clearInterval(timer);
    if (root.Bokeh !== undefined) draw();
  }, 10);
})(window);""" % (function, json.dumps(_document()), json.dumps(items))


def _place(place):
    return '\n  <div id="%s" data-root-id="p1001" style="display: contents;"></div>\n' % place


def _loading(library, register):
    return """'use strict';
(function (root) {
  const force = true;
  %s
  const inline = [function (Bokeh) { %s }, function (Bokeh) {}];
  for (const run of inline) run.call(root, root.Bokeh);
  const told = document.getElementById("banner");
  if (force && told) told.textContent = `BokehJS ${root.Bokeh.version} successfully loaded.`;
}(window));""" % ("if (root.Jupyter !== undefined) require('base/js/events');" if register else "", library)


def output_notebook(library=None):
    display({"text/html": '<style>.bk-notebook-logo { width: 20px; }</style><div><a class="bk-notebook-logo"></a><span id="banner">Loading BokehJS ...</span></div>'}, raw=True)
    library = library or open("bokeh.min.js").read()
    display({"application/javascript": _loading(library, True), LOAD: _loading(library, False)}, raw=True)


def show():
    display({"text/html": _place("b1")}, raw=True)
    print("between the place and its script", file=sys.stderr)
    display({"application/javascript": _embed("b1", "embed_items_notebook"), EXEC: ""}, raw=True, metadata={EXEC: {"id": "p1001"}})


def file_html():
    library = open("bokeh.min.js").read()
    script = '(function () { const fn = function () { %s }; if (document.readyState != "loading") fn(); else document.addEventListener("DOMContentLoaded", fn); })();'
    return HTML('<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8"><title>Bokeh Plot</title><style>html, body { display: flow-root; height: 100%; margin: 0; }</style>'
                '<script type="text/javascript">' + library + '</script></head><body>' + _place("b2") +
                '<script type="text/javascript">' + script % _embed("b2", "embed_items") + "</script></body></html>")
