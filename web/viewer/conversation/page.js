'use strict';
// The page of one cell in a conversation: an MCP App (SEP-1865, revision 2026-01-26). It speaks with the host's window and with nobody
// else, and asks the server, through the host, for what there is of the cell: as HTML, in parts of which it has only what is new.
(() => {
  const at = (id) => document.getElementById(id);
  const [root, dark, head, body, code, outputs] = [document.documentElement, ...['dark', 'head', 'body', 'code', 'outputs'].map(at)];
  const inlineHeight = 600; // pixels, that a cell has in a conversation at most
  const patience = 10 * 60_000; // how long a call is waited for that has not come: its user may be asked first
  const [soonest, latest] = [300, 3000]; // between two questions to the server

  // The host.
  const host = {can: {}, context: {}};
  let gone = false, asked = 0;
  const waiting = new Map();
  const post = (message) => window.parent.postMessage({jsonrpc: '2.0', ...message}, '*');
  const notify = (method, params) => post({method, params});
  const ask = (method, params) => new Promise((resolve, reject) => {
    waiting.set(++asked, {resolve, reject});
    post({id: asked, method, params});
  });
  const call = (name, args) => ask('tools/call', {name, arguments: args});

  addEventListener('message', ({source, data}) => {
    if (source !== window.parent || data?.jsonrpc !== '2.0') return;
    if (data.method === undefined) {
      const {resolve, reject} = waiting.get(data.id) ?? {};
      waiting.delete(data.id);
      if (data.error) reject?.(new Error(data.error.message)); else resolve?.(data.result ?? {});
      return;
    }
    const answer = Object.hasOwn(told, data.method) ? told[data.method](data.params ?? {}) : undefined;
    if (data.id === undefined) return;
    post({id: data.id, ...(answer ? {result: answer} : {error: {code: -32601, message: `There is no method ${data.method}`}})});
  });

  // What the host tells.
  const told = {
    'ping': () => ({}),
    'ui/resource-teardown': () => { gone = true; return {}; },
    'ui/notifications/tool-input-partial': ({arguments: args}) => { showInput(args ?? {}); },
    'ui/notifications/tool-input': ({arguments: args}) => {
      showInput(args ?? {});
      say('queued', 'running');
      const {session_id, code, path} = args ?? {};
      if (code || path) follow({session_id, ...(path ? {path} : {code})});
    },
    'ui/notifications/tool-result': (result) => {
      came = result;
      const {session_id, execution_id} = result._meta?.['cellblock/execution'] ?? {};
      if (session_id && execution_id && host.can.serverTools) follow({session_id, execution_id});
      else if (result.isError || !cell.execution_id) showResult(); // what was refused has no cell: one of the same code is another call's
    },
    'ui/notifications/tool-cancelled': ({reason}) => {
      if (cell.execution_id) return; // how it ends its server says
      turn++;
      say('stopped', reason ? `cancelled: ${String(reason).slice(0, 200)}` : 'cancelled');
    },
    'ui/notifications/host-context-changed': (context) => { adapt(context); },
  };

  // What the page looks like.
  const ours = {
    '--page': '--color-background-primary', '--surface': '--color-background-primary', '--sunken': '--color-background-secondary', '--line': '--color-border-primary',
    '--ink': '--color-text-primary', '--dim': '--color-text-secondary', '--font': '--font-sans', '--mono': '--font-mono',
  };
  function adapt(context) {
    Object.assign(host.context, context);
    const {theme, styles, displayMode, availableDisplayModes: modes = [], containerDimensions: room = {}} = host.context;
    if (theme) {
      root.style.colorScheme = theme;
      dark.media = theme === 'dark' ? 'all' : 'not all';
    }
    const variables = styles?.variables ?? {};
    const colours = ['--color-background-primary', '--color-text-primary'].every((name) => variables[name]); // one alone may not be read on ours
    for (const [own, theirs] of Object.entries(ours)) {
      if (variables[theirs] && (colours || theirs.startsWith('--font'))) root.style.setProperty(own, variables[theirs]);
    }
    if (colours && !variables[ours['--line']]) root.style.setProperty('--line', 'color-mix(in srgb, var(--ink) 16%, var(--page))');
    root.dataset.mode = displayMode ?? 'inline';
    root.style.setProperty('--most', `${Math.max(160, Math.min(inlineHeight, room.height ?? room.maxHeight ?? inlineHeight))}px`);
    const larger = displayMode === 'fullscreen' ? 'inline' : 'fullscreen';
    at('larger').hidden = !modes.includes(larger);
    at('larger').ariaLabel = at('larger').title = larger === 'inline' ? 'Back to the conversation' : 'Show it larger';
    measure();
  }

  // measure tells the host how high the page is. Browsers observe nothing of a page that is out of sight, so it is called after changes, too.
  let height = 0;
  function measure() {
    const now = Math.ceil(document.body.getBoundingClientRect().height);
    if (now === height || !host.ready || root.dataset.mode !== 'inline') return;
    height = now;
    notify('ui/notifications/size-changed', {height});
  }
  new ResizeObserver(measure).observe(document.body);
  addEventListener('load', measure, true); // also of pictures

  // The cell.
  let cell = {}; // as the server told it last
  let came; // the call's result
  let turn = 0; // another one when another cell is followed
  let began = performance.now();
  const unfolded = new Set();

  // say shows how the cell is.
  function say(status, label) {
    head.className = `cell-head ${status}`;
    if (at('status').textContent !== label) at('status').textContent = label;
  }

  function showInput({code: source, path, args, session_id: session}) {
    if (cell.execution_id) return;
    const text = typeof source === 'string' ? source : typeof path === 'string' ? ['run', path, ...(Array.isArray(args) ? args : [])].join(' ') : '';
    code.hidden = !text;
    if (code.textContent !== text) code.textContent = text;
    named(session);
    measure();
  }

  function named(session) {
    at('session').textContent = session ?? '';
    at('session').hidden = !session;
  }

  const pause = (time) => new Promise((resolve) => setTimeout(resolve, time));

  // follow shows a cell until nothing comes any more, and tells when it has drawn it first.
  async function follow(which, drawn = () => {}) {
    if (!host.can.serverTools) return;
    const mine = ++turn, until = performance.now() + patience;
    if (which.execution_id !== cell.execution_id || which.session_id !== cell.session_id) cell = {};
    if (!which.execution_id) await pause(soonest); // an old conversation's result comes right behind, and names the cell
    for (let failed = 0; mine === turn && !gone;) {
      try {
        const shown = await look(which, cell.seen);
        if (mine !== turn || gone) return;
        failed = 0;
        if (shown.status === 'absent') {
          if (performance.now() > until) return void say('stopped', 'nothing has come of it');
          await pause(soonest);
          continue;
        }
        which = {session_id: shown.session_id, execution_id: shown.execution_id};
        draw(shown);
        drawn();
        drawn = () => {};
        if (shown.ended) return;
      } catch (error) {
        if (mine !== turn || gone) return;
        if (came && !outputs.childElementCount) return void showResult();
        if (++failed > 5) return void problem(`What the cell shows cannot be fetched: ${plain(error)}`);
      }
      await pause(failed ? latest * failed : Math.min(latest, Math.max(soonest, (cell.seconds ?? 0) * 20))); // what has run for long is in no hurry
    }
  }

  // look asks the server for a cell.
  async function look(which, seen = '') {
    const have = [code, ...outputs.children].map((e) => e.dataset.version).filter(Boolean);
    const {structuredContent: shown, isError, content} = await call('show_cell', {...which, seen, have, whole: [...unfolded]});
    if (isError || !Array.isArray(shown?.items)) throw new Error(content?.find((block) => block.type === 'text')?.text ?? 'the host has left it out');
    return shown;
  }

  function draw(shown) {
    const stays = body.scrollTop + body.clientHeight >= body.scrollHeight - 4 && !shown.ended;
    cell = shown;
    began = performance.now() - shown.seconds * 1000;
    say(shown.status, shown.label);
    at('number').textContent = `[${shown.execution_id}]`;
    at('number').hidden = false;
    named(shown.session_id);
    at('took').textContent = shown.took ?? '';
    at('failure').replaceChildren(shown.failure ?? '', ' ', Object.assign(document.createElement('span'), {textContent: shown.hint ?? ''}));
    at('failure').hidden = !shown.failure;
    at('open').hidden = !shown.link || !host.can.openLinks;
    if (at('interrupt').hidden === Boolean(shown.interrupts)) at('interrupt').disabled = false;
    at('interrupt').hidden = !shown.interrupts;
    if (shown.ended) at('problem')?.remove();
    put(code, shown.code);
    code.className = shown.code.kind;
    code.hidden = false;
    place(shown.items);
    if (stays) body.scrollTop = body.scrollHeight;
    tick();
    measure();
  }

  // place puts the items of a cell in their order, and touches none that is as it was.
  function place(items) {
    const known = new Map([...outputs.children].map((e) => [e.dataset.key, e]));
    items.forEach((item, i) => {
      const element = known.get(item.key) ?? document.createElement('div');
      known.delete(item.key);
      element.className = `item ${item.kind}`;
      element.dataset.key = item.key;
      put(element, item);
      if (outputs.children[i] !== element) outputs.insertBefore(element, outputs.children[i] ?? null);
    });
    for (const element of known.values()) element.remove();
  }

  function put(element, {version, html}) {
    if (html !== undefined) element.replaceChildren(harmless(html));
    element.dataset.version = version;
  }

  // harmless is HTML without what could do anything but be read. The server's has none of it; and if it had, the page's policy would keep
  // it from running.
  const banned = 'script, style, link, meta, base, iframe, frame, frameset, object, embed, form, input, textarea, select, template, slot, svg, audio, video, source, dialog';
  const harmful = /^(on.*|style|id|name|src|srcset|srcdoc|target|ping|download|action|formaction|background|poster|xlink:href|is|slot|autofocus|contenteditable|popover.*|command.*)$/;
  function harmless(html) {
    const {body: made} = new DOMParser().parseFromString(html, 'text/html');
    for (const element of made.querySelectorAll(banned)) element.remove();
    for (const element of made.querySelectorAll('*')) {
      for (const {name, value} of [...element.attributes]) {
        if (harmful.test(name) && !(element.localName === 'img' && name === 'src' && value.startsWith('data:image/'))) element.removeAttribute(name);
      }
    }
    const part = document.createDocumentFragment();
    part.append(...made.childNodes);
    return part;
  }

  // showResult shows what the call has brought, where no more can be had.
  function showResult() {
    turn++;
    cell = {};
    say(came.isError ? 'failed' : 'ok', came.isError ? 'error' : 'done');
    for (const of of ['number', 'failure', 'interrupt', 'open']) at(of).hidden = true;
    at('took').textContent = '';
    outputs.replaceChildren(...(came.content ?? []).map((block) => {
      const item = Object.assign(document.createElement('div'), {className: 'item'});
      if (block.type === 'text') item.append(Object.assign(document.createElement('pre'), {textContent: block.text}));
      if (block.type === 'image' && /^image\/[a-z+.-]+$/.test(block.mimeType)) {
        const image = Object.assign(document.createElement('img'), {src: `data:${block.mimeType};base64,${block.data}`, alt: 'Picture made by the cell'});
        const figure = Object.assign(document.createElement('figure'), {className: 'picture'});
        figure.append(image);
        item.append(figure);
      }
      return item;
    }));
    measure();
  }

  const plain = (error) => error.message.replace(/^Error: /, '');

  function problem(text) {
    const line = at('problem') ?? Object.assign(document.createElement('p'), {id: 'problem', className: 'problem', role: 'alert'});
    line.textContent = text;
    head.append(line);
    measure();
  }

  // A clock that runs as long as the cell does.
  const clock = (s) => s < 60 ? `${Math.floor(s)} s` : s < 3600 ? `${Math.floor(s / 60)} min ${Math.floor(s % 60)} s` : `${Math.floor(s / 3600)} h ${Math.floor(s / 60) % 60} min`;
  function tick() {
    if (cell.status === 'running' && !cell.ended) at('took').textContent = clock((performance.now() - began) / 1000);
  }
  setInterval(tick, 1000);

  // What its user does.
  const follows = async (link) => {
    if (/^(https?|mailto):/i.test(link ?? '') && host.can.openLinks) await ask('ui/open-link', {url: link}).catch(() => {});
  };
  // The rest of a text comes as what is new does, so that no answer that was asked for before folds it again.
  const fold = (key, open) => {
    if (open) unfolded.add(key); else unfolded.delete(key);
    const {session_id, execution_id} = cell;
    cell.seen = '';
    follow({session_id, execution_id}, () => {
      [...outputs.children].find((e) => e.dataset.key === key)?.querySelector('.unfold, .refold')?.focus({preventScroll: true});
    });
  };
  addEventListener('click', (event) => {
    const {target} = event;
    const link = target.closest('a');
    if (link) {
      event.preventDefault();
      follows(link.getAttribute('href'));
    }
    const button = target.closest('.unfold, .refold');
    if (button && cell.execution_id) fold(button.closest('.item').dataset.key, button.matches('.unfold'));
  });
  addEventListener('auxclick', (event) => { if (event.target.closest('a')) event.preventDefault(); });
  at('open').addEventListener('click', () => follows(cell.link));
  at('larger').addEventListener('click', async () => {
    const mode = host.context.displayMode === 'fullscreen' ? 'inline' : 'fullscreen';
    const result = await ask('ui/request-display-mode', {mode}).catch(() => ({}));
    if (result.mode) adapt({displayMode: result.mode});
  });
  at('interrupt').addEventListener('click', async () => {
    at('interrupt').disabled = true;
    try {
      const {isError, content} = await call('interrupt_cell', {session_id: cell.session_id, execution_id: cell.execution_id});
      if (isError) throw new Error(content?.find((block) => block.type === 'text')?.text ?? 'The cell could not be interrupted.');
    } catch (error) {
      at('interrupt').disabled = false;
      problem(plain(error));
    }
  });

  if (window.parent === window) {
    say('stopped', 'This page belongs in a conversation.');
    return;
  }
  ask('ui/initialize', {
    protocolVersion: '2026-01-26', appInfo: {name: 'cellblock', version: '1'}, appCapabilities: {availableDisplayModes: ['inline', 'fullscreen']},
  }).then(({hostCapabilities, hostContext}) => {
    host.can = hostCapabilities ?? {};
    host.ready = true;
    adapt(hostContext ?? {});
    notify('ui/notifications/initialized', {});
  }, (error) => problem(error.message));
})();
