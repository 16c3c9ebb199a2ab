// Code, texts and tables of outputs are copied by a button beside them, which says so. Its word is the style sheet's: it is no part of what
// is beside it.
import {fragment} from './fragment.js';
import {get} from './send.js';
import {attempt} from './toast.js';

const shown = 2000; // ms for which it says so
const heard = Object.assign(document.createElement('p'), {className: 'visually-hidden'});
heard.setAttribute('role', 'status');
document.getElementById('main').append(heard);

// copy copies what a button stands beside. base is the address of the session's cells.
export const copy = (button, base) => attempt(async () => {
  await put(await textBeside(button, base));
  button.classList.add('done');
  heard.textContent = 'Copied';
  setTimeout(() => {
    button.classList.remove('done');
    heard.textContent = '';
  }, shown);
});

// setItem gives an item of a cell other content; the button that copies it stays.
export const setItem = (item, html) => item.replaceChildren(fragment(html), ...item.querySelectorAll(':scope > .copy'));

// textBeside is the code of a cell, or a text of its outputs: all of it, also where it is folded.
async function textBeside(button, base) {
  const item = button.closest('.item');
  if (!item) return button.parentElement.querySelector('.code').textContent;
  if (!item.querySelector(':scope > .unfold')) return textOf(item);
  const {html} = await get(`${base}/${item.closest('.cell').dataset.n}/items/${item.dataset.key}`);
  return textOf(fragment(html));
}

// A table is copied as spreadsheets take it: its fields apart by tabs.
const textOf = (node) => [...node.querySelectorAll('.html table')].map(fieldsOf).join('\n') || [...node.querySelectorAll('pre, .error-name, summary')].map((one) => one.textContent.replace(/\n$/, '')).join('\n');

// fieldsOf are the rows of a table. What a field covers of other columns and rows is empty.
function fieldsOf(table) {
  const rows = Array.from(table.rows, () => []);
  for (const [at, {cells}] of [...table.rows].entries()) {
    let column = 0;
    for (const {textContent, colSpan, rowSpan} of cells) {
      while (rows[at][column] !== undefined) column++;
      for (let down = at; down < Math.min(at + rowSpan, rows.length); down++) {
        for (let right = column; right < column + colSpan; right++) rows[down][right] = '';
      }
      rows[at][column] = textContent.trim().replace(/\s+/g, ' ');
    }
  }
  return rows.map((row) => row.join('\t')).join('\n');
}

// put puts a text on the clipboard. Pages that came without encryption are not given it, and copy what is selected, as a person does.
async function put(text) {
  try {
    await navigator.clipboard.writeText(text);
  } catch {
    if (!putSelected(text)) throw new Error('The browser does not let this page copy.');
  }
}

function putSelected(text) {
  const at = document.activeElement, all = document.createElement('textarea');
  all.value = text;
  all.className = 'visually-hidden';
  document.body.append(all);
  all.focus({preventScroll: true});
  all.select();
  const done = document.execCommand('copy');
  all.remove();
  at?.focus({preventScroll: true});
  return done;
}
