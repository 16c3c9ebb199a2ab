// As much of the AMD loader as notebooks' outputs take for granted: named modules that the document itself defines.
(() => {
  const modules = new Map(), waiting = [];
  const done = (names) => names.every((name) => modules.has(name) || builtIn(name));
  const builtIn = (name) => name === "require" || name === "exports" || name === "module";
  const run = (names, callback) => {
    const module = { exports: {} };
    const value = callback(...names.map((name) => name === "require" ? window.require : name === "exports" ? module.exports : name === "module" ? module : modules.get(name)));
    return value === undefined ? module.exports : value;
  };
  const settle = () => {
    for (let i = 0; i < waiting.length; i++) {
      if (!done(waiting[i].names)) continue;
      const [next] = waiting.splice(i, 1);
      next.run();
      i = -1;
    }
  };
  const urls = new Map();
  const load = (names) => {
    for (const name of names) {
      const url = urls.get(name) ?? (/^https?:/.test(name) ? name : undefined);
      if (!url || modules.has(name)) continue;
      const script = document.createElement("script"); // it is blocked, which says where it would have come from
      script.src = /\.js$/.test(url) ? url : `${url}.js`;
      document.head.append(script);
    }
  };
  window.define = (...given) => {
    const name = typeof given[0] === "string" ? given.shift() : `anonymous ${modules.size}`;
    const factory = given.pop(), names = given.pop() ?? (typeof factory === "function" ? ["require", "exports", "module"] : []);
    waiting.push({ names, run: () => modules.set(name, typeof factory === "function" ? run(names, factory) : factory) });
    settle();
  };
  window.define.amd = {};
  window.require = (names, callback) => {
    if (typeof names === "string") return modules.get(names);
    waiting.push({ names, run: () => callback && run(names, callback) });
    load(names);
    settle();
  };
  window.require.undef = (name) => modules.delete(name);
  window.require.config = (config) => { for (const [name, url] of Object.entries(config?.paths ?? {})) urls.set(name, [url].flat()[0]); return window.require; };
  window.require.specified = (name) => modules.has(name);
  window.requirejs = window.require;
})();
