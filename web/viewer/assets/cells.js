// The cells of the session page, as they come. The page holds a few blocks of them; of the others it keeps the height, and fetches them
// as they come near. All that is told of a cell or an item takes the place of what was there of it.
import {subscribe} from './live.js';
import {fragment, element} from './fragment.js';
import {get} from './send.js';
import {keys} from './keys.js';
import {unfold, refold} from './fold.js';
import {copy, setItem} from './copy.js';
import {enlarge} from './lightbox.js';
import {sayBroken} from './broken.js';
import {keepIndex} from './table.js';
import {attempt} from './toast.js';
import {keep, pass} from './focus.js';

const size = 50, most = 8, guess = 160; // cells of a block, blocks that are filled, pixels of a cell nobody has seen
const list = document.getElementById('cells');
const base = `/s/${list.dataset.session}/cells`;
const blocks = new Map(); // number of its first cell → block
const first = Number(list.dataset.first); // of those before nothing is kept
let total = Number(list.dataset.total);

// block is what is known of one stretch of cells. waiting are events that came while it was fetched; null: it is not being fetched.
function adopt(node) {
  const block = {node, from: Number(node.dataset.from), to: Number(node.dataset.to), filled: 'filled' in node.dataset, near: false, waiting: null, fetched: null};
  blocks.set(block.from, block);
  if (!block.filled) node.style.height = `${(block.to - block.from + 1) * average()}px`;
  watcher.observe(node);
  return block;
}

function average() {
  let cells = 0, pixels = 0;
  for (const {node, filled, from, to} of blocks.values()) {
    if (!filled) continue;
    cells += to - from + 1;
    pixels += node.offsetHeight;
  }
  return cells ? Math.max(40, pixels / cells) : guess;
}

const watcher = new IntersectionObserver((changes) => {
  for (const {target, isIntersecting} of changes) {
    const block = blocks.get(Number(target.dataset.from));
    block.near = isIntersecting;
    if (isIntersecting) fill(block);
  }
  prune();
}, {rootMargin: '1500px 0px'});

// blockOf is the block of a cell, which is made if it is new.
function blockOf(n) {
  const from = Math.floor((n - 1) / size) * size + 1;
  const known = blocks.get(from);
  if (known) {
    if (n > known.to) known.node.dataset.to = known.to = n;
    return known;
  }
  const node = document.createElement('div');
  node.className = 'block';
  Object.assign(node.dataset, {from, to: n});
  if (n === from) node.dataset.filled = '';
  list.append(node);
  return adopt(node);
}

// bring fetches a block's cells to be shown. What is told of them meanwhile comes after them.
function bring(block, show) {
  block.waiting = [];
  block.fetched = get(`${base}?from=${block.from}&to=${block.to}`).then(({html}) => show(fragment(html))).finally(() => {
    const {waiting} = block;
    block.waiting = block.fetched = null;
    if (block.filled) for (const run of waiting) run();
    prune();
  });
  return block.fetched;
}

async function fill(block) {
  if (block.filled || block.fetched) return block.fetched?.catch(() => {});
  const fetched = bring(block, (cells) => {
    block.node.replaceChildren(cells);
    block.node.style.height = '';
    block.filled = true;
  });
  return attempt(() => fetched.catch((error) => { // it is tried again when it comes near the next time
    if (block.near) setTimeout(() => fill(block), 2000);
    if (error.status) throw error;
  }));
}

// prune empties the blocks that are farthest away, when there are many.
function prune() {
  const filled = [...blocks.values()].filter((block) => block.filled);
  if (filled.length <= most) return;
  const middle = scrollY + innerHeight / 2;
  const distance = ({node}) => Math.abs(node.offsetTop + node.offsetHeight / 2 - middle);
  const far = filled.filter((block) => !block.near && !block.fetched).sort((a, b) => distance(b) - distance(a));
  empty(far.slice(0, filled.length - most));
}

// empty empties blocks, which keep their heights. All are measured before the first is changed: the page is laid out once.
function empty(blocks) {
  const heights = blocks.map(({node}) => node.offsetHeight);
  blocks.forEach((block, i) => {
    block.node.style.height = `${heights[i]}px`;
    block.node.replaceChildren();
    block.filled = false;
  });
}

// within runs something for a cell's block: now, when it has been fetched, or, if it is not there, not at all.
function within(n, run) {
  const block = blockOf(n);
  if (block.waiting) block.waiting.push(() => run(block));
  else if (block.filled) run(block);
}

const cellOf = (n) => document.getElementById(`c${n}`);

// changed lets the other parts of the page know that a cell, or its head, is another one than before.
const changed = (n) => document.dispatchEvent(new CustomEvent('cell-changed', {detail: n}));

// foldOutputs hides what a cell has put out, or shows it again.
function foldOutputs(cell, folded) {
  const button = cell.querySelector('.cell-head .fold-outputs');
  if (folded) pass(cell.querySelector('.outputs'), cell);
  else pass(cell.querySelector('.show-outputs'), button);
  cell.classList.toggle('folded', folded);
  button.ariaExpanded = String(!folded);
}

const folded = (cell) => cell.classList.contains('folded');

// place puts a cell where it belongs in its block, instead of what was there of it. Until it is laid out it is taken to be as high, so
// that the page does not get shorter for a moment, and move.
function place(node, fresh) {
  const n = Number(fresh.dataset.n), old = cellOf(n);
  if (old) foldOutputs(fresh, folded(old));
  if (old) fresh.style.containIntrinsicSize = `auto ${old.offsetHeight}px`;
  if (old) keep(old, () => { old.replaceWith(fresh); return fresh; }, () => fresh);
  else node.insertBefore(fresh, [...node.children].find((cell) => Number(cell.dataset.n) > n) ?? null);
  changed(n);
}

// show puts what a cell shows anew behind what it shows already, or in its place.
function show(outputs, cleared, items) {
  if (cleared) outputs.replaceChildren();
  const item = (key) => outputs.querySelector(`:scope > [data-key="${CSS.escape(key)}"]`);
  for (const {key, html} of items) {
    const old = item(key);
    if (!old) outputs.insertBefore(element(html), item('advice')); // which stays the last
    else if (!('whole' in old.dataset)) old.replaceWith(element(html));
  }
}

// lacks tells whether there was no room for all of a cell.
const lacks = (cell) => cell.querySelector(':scope > .rest') !== null;

// bringRest fetches a cell alone, all of which had no room beside the others of its block.
async function bringRest(n) {
  const {html} = await attempt(() => get(`${base}/${n}`)) ?? {};
  if (html) within(n, ({node}) => {
    const top = cellOf(n)?.getBoundingClientRect().top;
    if (top === undefined) return;
    place(node, element(html));
    scrollBy(0, cellOf(n).getBoundingClientRect().top - top);
  });
}

const told = {
  begin({total: now, from}) {
    for (let n = size * Math.floor(total / size) + 1; n < from; n += size) blockOf(Math.min(n + size - 1, from - 1));
    total = Math.max(total, now);
    if (begun) refresh();
    begun = true;
  },
  cell({n, html}) {
    if (n > total) note(`${n}`);
    total = Math.max(total, n);
    document.getElementById('no-cells').hidden = true;
    within(n, ({node}) => place(node, element(html)));
  },
  head({n, html}) {
    within(n, () => {
      const cell = cellOf(n);
      if (!cell) return;
      keep(cell, () => cell.querySelector('.cell-head').replaceWith(element(html)), () => cell);
      foldOutputs(cell, folded(cell));
      for (const item of cell.querySelectorAll('.item[data-whole]')) unfold(item, base);
      changed(n);
    });
  },
  items({n, cleared, items}) {
    if (begun && items?.length) {
      news.delete(`${n}`);
      note(...items.map(({key}) => `${n} ${key}`));
    }
    within(n, () => {
      const outputs = cellOf(n)?.querySelector('.outputs');
      if (!outputs) return;
      keep(cellOf(n), () => show(outputs, cleared, items ?? []), () => cellOf(n));
    });
  },
  display({display, html}) {
    for (const item of list.querySelectorAll(`[data-display="${CSS.escape(display)}"]`)) {
      keep(item.closest('.cell'), () => setItem(item, html), () => item.closest('.cell'));
    }
  },
};
let begun = false;

// refresh fetches again what is in sight: the connection was lost for a while, and more may have changed than is told anew.
function refresh() {
  for (const block of blocks.values()) renew(block);
}

function renew(block) {
  if (block.fetched) {
    block.fetched.then(() => renew(block), () => {});
  } else if (block.filled && !block.near) {
    empty([block]);
  } else if (block.filled) {
    bring(block, (cells) => {
      for (const fresh of cells.querySelectorAll('.cell')) { // of many that are new not all are told
        const {n, v} = fresh.dataset, old = cellOf(n);
        if (old?.dataset.v === v) continue;
        if (old && !lacks(old) && lacks(fresh)) bringRest(n);
        else place(block.node, fresh);
      }
    }).catch(() => {}); // the next connection does it
  }
}

list.addEventListener('click', ({target}) => {
  const item = target.closest('.item');
  if (target.closest('.unfold, .refold')) {
    follow(false); // to read what is there
    (target.closest('.unfold') ? unfold : refold)(item, base);
  }
  if (target.closest('.rest')) {
    follow(false);
    bringRest(target.closest('.cell').dataset.n);
  }
  if (target.matches('.fold-outputs')) foldOutputs(target.closest('.cell'), !folded(target.closest('.cell')));
  if (target.matches('.copy')) copy(target, base);
  const picture = target.closest('.enlarge');
  if (picture) enlarge(picture.querySelector('img'));
});

// A frame's document says how high it is, and nothing else that it says is heard.
addEventListener('message', ({source, data}) => {
  if (data?.cellblock !== 'height' || !Number.isFinite(data.height)) return;
  for (const frame of list.querySelectorAll('iframe.frame')) {
    if (frame.contentWindow === source) frame.style.height = `${Math.min(Math.max(data.height, 24), 4000)}px`;
  }
});

// One that was there before this script has told it to nobody.
for (const {contentWindow} of list.querySelectorAll('iframe.frame')) contentWindow?.postMessage({cellblock: 'height?'}, '*');

// Following: the end stays in sight as it grows, until one scrolls up.
const followButton = document.getElementById('follow');
let following = true, lastTop = 0;
const toEnd = () => document.documentElement.scrollHeight - innerHeight - scrollY;

export function follow(on) {
  following = on;
  followButton?.setAttribute('aria-pressed', String(on));
  if (on) scrollTo(0, document.documentElement.scrollHeight);
  if (on) news.clear();
  sayNews();
}

// What comes while somebody reads elsewhere is counted: outputs that are new or have grown, and cells that have none yet.
const news = new Set();
const newsCount = document.getElementById('follow-news');
function sayNews() {
  if (newsCount) newsCount.textContent = news.size ? ` · ${news.size} new` : '';
}
function note(...names) {
  if (following) return;
  for (const name of names) news.add(name);
  sayNews();
}
// Who scrolls up stops following. A page that gets shorter, as a prompt goes, moves as well, though nobody scrolls.
let lastHeight = 0, pushed = false;
const pushes = ({type, deltaY, key, target}) => type === 'touchmove' || deltaY < 0 ||
  ['ArrowUp', 'PageUp', 'Home', ' '].includes(key) && !target.matches?.('input, textarea');
for (const event of ['wheel', 'touchmove', 'keydown']) addEventListener(event, (event) => { pushed ||= pushes(event); }, {passive: true});
addEventListener('scroll', () => {
  const {scrollHeight} = document.documentElement;
  if (scrollY < lastTop - 4 && toEnd() > 60) {
    if (following && (pushed || scrollHeight === lastHeight)) follow(false);
  } else if (!following && scrollY > lastTop && toEnd() < 8) follow(true);
  [lastTop, lastHeight, pushed] = [scrollY, scrollHeight, false];
}, {passive: true});
new ResizeObserver(() => {
  if (!following) return;
  scrollTo(0, document.documentElement.scrollHeight);
  [lastTop, lastHeight] = [scrollY, document.documentElement.scrollHeight];
}).observe(document.body);
followButton?.addEventListener('click', () => follow(!following));
document.addEventListener('cell-run', () => follow(true)); // who runs a cell wants to see what becomes of it

// reach scrolls to a cell, wherever it is, and again as what is around it is laid out for the first time: until then heights are
// guesses. Who goes elsewhere meanwhile is not called back.
const settled = 6; // frames
let aims = 0, moves = 0;
async function reach(n, scroll) {
  const aim = ++aims, block = blockOf(n);
  if (!block.filled) {
    block.node.scrollIntoView();
    await fill(block);
  }
  const move = moves;
  for (let frame = 0; frame < settled && aim === aims && move === moves && cellOf(n); frame++) {
    scroll(cellOf(n), frame);
    await new Promise(requestAnimationFrame);
  }
}
for (const event of ['wheel', 'touchmove', 'pointerdown', 'keydown']) addEventListener(event, () => moves++, {capture: true, passive: true});

const kept = (n) => Math.max(Math.min(first, total), Math.min(total, n));

// goTo brings a cell into sight and makes it the one that keys are about, if it is to get the focus.
export function goTo(n, focused = true) {
  n = kept(n);
  if (n < total) follow(false);
  return reach(n, (cell, frame) => {
    if (frame === 0 && focused) cell.focus({preventScroll: true});
    cell.scrollIntoView({block: n === total ? 'nearest' : 'start'});
  });
}

// inSight is the first cell in sight.
export function inSight() {
  const top = Math.max(0, document.querySelector('.session-bar')?.getBoundingClientRect().bottom ?? 0);
  return [...list.querySelectorAll('.cell')].find((cell) => cell.getBoundingClientRect().bottom > top + 8);
}

// current is the number of the cell that keys are about: the one with the focus, or the one before the first in sight.
function current() {
  const focused = document.activeElement?.closest?.('.cell'), cell = focused ?? inSight();
  return cell ? Number(cell.dataset.n) - (focused ? 0 : 1) : total;
}

// A page that is loaded again, or come back to, shows the cell that it showed. How far it was scrolled says nothing about that, because
// the heights of cells that are not there are guesses.
history.scrollRestoration = 'manual';
const left = `left:${base}`;
addEventListener('pagehide', () => {
  const cell = following ? null : inSight();
  try {
    sessionStorage.setItem(left, JSON.stringify(cell ? {n: Number(cell.dataset.n), top: cell.getBoundingClientRect().top} : {}));
  } catch { /* then it begins at its end */ }
});

// leftAt is where the page was left, if it is loaded again or come back to: {n, top}, or {} where it followed.
function leftAt() {
  const [{type}] = performance.getEntriesByType('navigation');
  return type === 'navigate' ? null : JSON.parse(sessionStorage.getItem(left));
}

function comeBack({n, top}) {
  follow(false);
  return reach(kept(n), (cell) => scrollBy(0, cell.getBoundingClientRect().top - top));
}

keys({
  j: ['Next cell', () => goTo(current() + 1)],
  k: ['Previous cell', () => goTo(current() - 1)],
  'g g': ['First cell', () => goTo(first)],
  G: ['Last cell, and follow', () => { goTo(total); follow(true); }],
  o: ['Fold or unfold the outputs of a cell', () => {
    const cell = document.activeElement?.closest?.('.cell');
    if (cell) foldOutputs(cell, !folded(cell));
  }],
  f: ['Follow what happens, or stop', () => follow(!following)],
});

for (const node of list.querySelectorAll('.block')) adopt(node);
sayBroken(list);
keepIndex(list);
const asked = () => Number(location.hash.match(/^#c(\d+)$/)?.[1]);
addEventListener('hashchange', () => { if (asked()) goTo(asked()); });
const before = leftAt();
if (before?.n) comeBack(before);
else if (asked() && !before) goTo(asked());
else follow(true);
subscribe(`cells:${list.dataset.session}`, list.dataset.after, (event, data) => told[event]?.(data));
