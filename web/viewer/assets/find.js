// A text is found in all cells of a session, also in those that the page does not hold: the server looks for it.
import {goTo, inSight} from './cells.js';
import {get} from './send.js';
import {keys} from './keys.js';
import {unfold, refold} from './fold.js';
import {attempt} from './toast.js';

const {id} = document.getElementById('session').dataset;
const form = document.getElementById('find'), input = document.getElementById('find-text'), count = document.getElementById('find-count');
let found = [], at = -1, sought = '';

const mostMarked = 1000; // places of a text in each part of a cell: one letter may have as many as a browser takes seconds for

// marked are the first places of a text in a node, as ranges.
function marked(node, text) {
  const ranges = [], texts = document.createTreeWalker(node, NodeFilter.SHOW_TEXT);
  while (ranges.length < mostMarked && texts.nextNode()) {
    const {length} = texts.currentNode.data, small = texts.currentNode.data.toLowerCase();
    for (let i = small.indexOf(text); i >= 0 && ranges.length < mostMarked; i = small.indexOf(text, i + text.length)) {
      if (i + text.length > length) break; // small letters may be more than capitals
      const range = new Range();
      range.setStart(texts.currentNode, i);
      range.setEnd(texts.currentNode, i + text.length);
      ranges.push(range);
    }
  }
  return ranges;
}

const partsOf = (cell) => [...cell.querySelectorAll('.code, .outputs')];

// has tells whether a text stands in a node, also where its parts have colours of their own.
const has = (node, text) => node.textContent.toLowerCase().includes(text);

// unfoldFor unfolds the output of a cell in which the text is, if it stands nowhere else there. What was unfolded for nothing is folded again.
async function unfoldFor(cell, text) {
  if (partsOf(cell).some((part) => has(part, text))) return;
  for (const item of cell.querySelectorAll('.item:has(> .unfold)')) {
    await unfold(item, `/s/${id}/cells`);
    if (has(item, text)) return;
    await refold(item, `/s/${id}/cells`);
  }
}

// reveal brings a place into sight, also in a box that scrolls.
function reveal(range) {
  const at = range.startContainer.parentElement, box = at.closest('.unfolded');
  at.scrollIntoView({block: 'nearest'});
  if (!box) return;
  const inBox = range.getBoundingClientRect().top - box.getBoundingClientRect().top;
  box.scrollTop += inBox - box.clientHeight / 2;
  box.scrollIntoView({block: 'nearest'});
}

// show goes to a cell that has the text, and marks it there.
async function show() {
  const n = found[at], text = sought.toLowerCase();
  await goTo(n, false); // keys go on in the field
  const left = () => found[at] !== n || sought.toLowerCase() !== text;
  if (left()) return;
  const cell = document.getElementById(`c${n}`);
  if (cell) await unfoldFor(cell, text);
  if (left()) return;
  const ranges = cell ? partsOf(cell).flatMap((part) => marked(part, text)) : [];
  globalThis.CSS?.highlights?.set('found', new Highlight(...ranges));
  if (ranges.length > 0) reveal(ranges[0]);
}

function clear() {
  [found, at, sought] = [[], -1, ''];
  count.textContent = '';
  form.classList.remove('found');
  globalThis.CSS?.highlights?.delete('found');
}

// look looks for what is written, or goes on to the next cell, by 1, or to the one before.
const look = (by) => attempt(async () => {
  if (count.textContent === 'Looking…') return;
  const text = input.value;
  if (!text.trim()) {
    clear();
    return;
  }
  if (text !== sought) {
    count.textContent = 'Looking…';
    const {cells, partial} = await get(`/s/${id}/find?text=${encodeURIComponent(text)}`).catch((error) => { clear(); throw error; });
    clear();
    [found, sought] = [cells, text];
    const here = Number(inSight()?.dataset.n ?? 0), next = Math.max(0, found.findIndex((n) => n >= here)); // after the last comes the first
    at = by > 0 ? next - 1 : next;
    form.dataset.partial = partial ? '+' : '';
  }
  form.classList.toggle('found', found.length > 0);
  if (found.length === 0) {
    count.textContent = form.dataset.partial ? 'Not found in the last cells' : 'Not found'; // there was no time for all
    return;
  }
  at = (at + by + found.length) % found.length;
  count.textContent = `${at + 1} of ${found.length}${form.dataset.partial} ${found.length === 1 ? 'cell' : 'cells'}`;
  await show();
});

form.addEventListener('submit', (event) => {
  event.preventDefault();
  look(1);
});
document.getElementById('find-before').addEventListener('click', () => look(-1));
input.addEventListener('keydown', (event) => {
  if (event.key === 'Enter' && event.shiftKey || event.key === 'ArrowUp') {
    event.preventDefault();
    look(-1);
  } else if (event.key === 'ArrowDown') {
    event.preventDefault();
    look(1);
  } else if (event.key === 'Escape') {
    const cell = document.getElementById(`c${found[at]}`); // whose keys are heard now
    input.value = '';
    clear();
    input.blur();
    cell?.focus({preventScroll: true});
  }
});
input.addEventListener('input', () => { if (input.value !== sought && count.textContent !== 'Looking…') clear(); }); // what is said is of another text
if (!matchMedia('(pointer: coarse), (max-width: 40rem)').matches) input.placeholder += '  /'; // a phone has no such key
keys({'/': ['Find in all cells', () => input.select()]});
