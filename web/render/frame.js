// In the document of one output: tells the page around it how high it is, and its reader what was not loaded.
(() => {
  const told = new Set();
  const tell = () => {
    const root = document.documentElement, wide = root.scrollWidth > root.clientWidth;
    const bar = wide ? innerHeight - root.clientHeight : 0; // to scroll sideways, where it takes room
    const height = Math.ceil(Math.max(root.getBoundingClientRect().height, document.body ? document.body.scrollHeight : 0)) + bar;
    parent.postMessage({ cellblock: "height", height }, "*");
  };
  addEventListener("securitypolicyviolation", (event) => {
    const where = event.blockedURI;
    if (!/^(https?|wss?):/.test(where) || told.size >= 5) return;
    const host = new URL(where).host;
    if (told.has(host)) return;
    told.add(host);
    for (const late of document.querySelectorAll(".cellblock-error")) late.remove(); // it has failed because of this
    const note = document.createElement("p");
    note.className = "cellblock-blocked";
    note.textContent = `This output wants to load something from ${host}. Outputs have no network, so it may stay empty. ` +
      "Libraries that write themselves into the output work: Plotly with include_plotlyjs=True, Bokeh with output_notebook(INLINE), Altair with alt.renderers.enable(\"html\", inline=True).";
    const place = () => { document.body.prepend(note); tell(); };
    if (document.body) place(); else addEventListener("DOMContentLoaded", place);
  });
  // What a script throws is said where it would have shown something. What throws for want of the network is not said twice.
  const failed = new Set();
  const fail = (error, text) => {
    const said = `JavaScript: ${error instanceof Error ? `${error.name}: ${error.message}` : text}`.slice(0, 500);
    if (told.size || failed.size >= 3 || failed.has(said) || /ResizeObserver loop/.test(said)) return;
    failed.add(said);
    const note = Object.assign(document.createElement("p"), { className: "cellblock-error", textContent: said });
    const place = () => { if (!told.size) document.body.append(note); tell(); };
    if (document.body) place(); else addEventListener("DOMContentLoaded", place);
  };
  addEventListener("error", ({ error, message }) => fail(error, message));
  addEventListener("unhandledrejection", ({ reason }) => fail(reason, String(reason)));
  // The element that a cell's JavaScript writes into: the DOM's, as newer notebooks give it, which also knows what most code asks of
  // the jQuery object of older ones.
  window.cellblockElement = () => {
    const element = document.currentScript.previousElementSibling, { append } = element;
    const html = (given) => { element.innerHTML = given; return element; };
    return Object.assign(element, {
      0: element, get: () => element, html, text: (given) => { element.textContent = given; return element; },
      append: (...given) => {
        for (const one of given) typeof one === "string" && /^\s*</.test(one) ? element.insertAdjacentHTML("beforeend", one) : append.call(element, one);
        return element;
      },
    });
  };
  addEventListener("load", tell);
  addEventListener("message", ({ source, data }) => { if (source === parent && data?.cellblock === "height?") tell(); });
  addEventListener("DOMContentLoaded", () => { new ResizeObserver(tell).observe(document.documentElement); new ResizeObserver(tell).observe(document.body); });
})();
