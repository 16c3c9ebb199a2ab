// The side panel of the session page: which of its parts is open, and when each is to look again.
import {onDesk} from './desk.js';
import {keys} from './keys.js';
import {pass} from './focus.js';
import {restoreCells} from './restore.js';
import {variables} from './panel-variables.js';
import {files} from './panel-files.js';
import {resources} from './panel-resources.js';
import {details} from './panel-details.js';

const panel = document.getElementById('panel');
const id = document.getElementById('session').dataset.id;
const fold = document.getElementById('panel-fold');
const tabs = [...panel.querySelectorAll('[role=tab]')];
const narrow = matchMedia('(max-width: 64rem)');

// Each part has show(), when it is seen, hide(), and stale(), when the session has changed.
const parts = {'tab-variables': variables(id), 'tab-resources': resources(id), 'tab-details': details(id)};
if (document.getElementById('tab-files')) parts['tab-files'] = files(id, panel);

// What somebody chose is remembered by the browser, as far as that lets us.
const remembered = (key) => {
  try { return localStorage.getItem(key); } catch { return null; }
};
const remember = (key, value) => {
  try { localStorage.setItem(key, value); } catch { /* it is chosen anew next time */ }
};

let seen = null; // the part that is

function look() {
  const chosen = tabs.find((tab) => tab.getAttribute('aria-selected') === 'true');
  const now = panel.classList.contains('folded') || document.hidden ? null : parts[chosen.id];
  if (now === seen) return;
  seen?.hide();
  seen = now;
  seen?.show();
}

function choose(tab) {
  for (const one of tabs) {
    const is = one === tab;
    one.setAttribute('aria-selected', is);
    one.tabIndex = is ? 0 : -1;
    document.getElementById(one.getAttribute('aria-controls')).hidden = !is;
  }
}

function foldTo(folded) {
  if (folded) pass(document.getElementById('panel-body'), fold);
  panel.classList.toggle('folded', folded);
  fold.setAttribute('aria-expanded', !folded);
  fold.title = folded ? 'Show the panel' : 'Fold the panel';
}

function open(tab) {
  const same = tab.getAttribute('aria-selected') === 'true' && !panel.classList.contains('folded');
  choose(tab);
  remember('panel', tab.id);
  foldTo(same && narrow.matches);
  look();
}

panel.querySelector('[role=tablist]').addEventListener('click', (event) => {
  const tab = event.target.closest('[role=tab]');
  if (tab) open(tab);
});
panel.querySelector('[role=tablist]').addEventListener('keydown', (event) => {
  const by = {ArrowRight: 1, ArrowLeft: -1, ArrowDown: 1, ArrowUp: -1}[event.key];
  if (!by) return;
  event.preventDefault();
  const next = tabs[(tabs.indexOf(document.activeElement) + by + tabs.length) % tabs.length];
  choose(next);
  next.focus();
  remember('panel', next.id);
  look();
});
panel.addEventListener('keydown', (event) => { // where it lies over the page it goes as what lies over pages does
  if (event.key !== 'Escape' || !narrow.matches || panel.classList.contains('folded') || event.target.closest('dialog')) return;
  foldTo(true);
  look();
});
fold.addEventListener('click', () => {
  const folded = !panel.classList.contains('folded');
  foldTo(folded);
  remember('panel-folded', folded ? 'yes' : 'no');
  look();
});
document.addEventListener('visibilitychange', look);

const restore = document.getElementById('panel-restore');
restore?.addEventListener('click', () => restoreCells(id));

choose(tabs.find((tab) => tab.id === remembered('panel')) ?? tabs[0]);
const fit = () => foldTo(narrow.matches || remembered('panel-folded') === 'yes');
fit();
narrow.addEventListener('change', () => { fit(); look(); });

// Behind all cells, where the panel is in the page, Tab does not come to it soon. Who uses keys goes to what is open, or to another part
// by the arrows.
function goToTabs() {
  if (panel.classList.contains('folded')) fold.click();
  tabs.find((tab) => tab.tabIndex === 0).focus({preventScroll: true});
}
document.getElementById('skip-panel').addEventListener('click', (event) => {
  event.preventDefault(); // its place in the page is not where it is seen
  goToTabs();
});
keys({
  p: ['Fold the side panel, or show it', () => fold.click()],
  t: ['The tabs of the side panel', goToTabs],
});

// A session that rests has news for its panel, and one that has got another kernel, of which nothing is true that was said of the last;
// while it runs only what the server knows by itself is asked for. Files are also brought and deleted by others, between cells.
let generation = null, filed = 0;
onDesk((desk) => {
  const other = generation !== null && generation !== desk.generation, brought = filed !== desk.filed;
  ({generation, filed} = desk);
  const rests = other || !(desk.running || desk.queue);
  for (const part of Object.values(parts)) if (rests || part.alwaysKnown || brought && part === parts['tab-files']) part.stale();
});
look();
