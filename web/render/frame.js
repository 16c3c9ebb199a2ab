// In the document of one output: tells the page around it how high it is, and its reader what was not loaded.
(() => {
  const told = new Set();
  const tell = () => {
    const height = Math.ceil(Math.max(document.documentElement.getBoundingClientRect().height, document.body ? document.body.scrollHeight : 0));
    parent.postMessage({ cellblock: "height", height }, "*");
  };
  addEventListener("securitypolicyviolation", (event) => {
    const where = event.blockedURI;
    if (!/^(https?|wss?):/.test(where) || told.size >= 5) return;
    const host = new URL(where).host;
    if (told.has(host)) return;
    told.add(host);
    const note = document.createElement("p");
    note.className = "cellblock-blocked";
    note.textContent = `This output wants to load something from ${host}. Outputs have no network, so it may stay empty. ` +
      "Libraries that write themselves into the output work: Plotly with include_plotlyjs=True, Bokeh with output_notebook(INLINE), Altair with alt.renderers.enable(\"html\", inline=True).";
    const place = () => { document.body.prepend(note); tell(); };
    if (document.body) place(); else addEventListener("DOMContentLoaded", place);
  });
  addEventListener("load", tell);
  addEventListener("message", ({ source, data }) => { if (source === parent && data?.cellblock === "height?") tell(); });
  addEventListener("DOMContentLoaded", () => { new ResizeObserver(tell).observe(document.documentElement); new ResizeObserver(tell).observe(document.body); });
})();
