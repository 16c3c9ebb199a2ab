// The list of sessions: live, searched, and moved through by keys.
import {interrupt} from './interrupt.js';
import {subscribe} from './live.js';
import {fragment} from './fragment.js';
import {orElse, pass} from './focus.js';
import {keys} from './keys.js';
import {post} from './send.js';
import {confirm} from './dialog.js';
import {beginSession} from './new-session.js';
import {attempt} from './toast.js';

const table = document.getElementById('sessions');
const body = table.tBodies[0];
const none = document.getElementById('none');
const unfound = document.getElementById('unfound');
const search = document.getElementById('search');

const rowOf = (id) => body.querySelector(`tr[data-id="${CSS.escape(id)}"]`);

// A row alone is no HTML; a table around it is.
const makeRow = (html) => fragment(`<table><tbody>${html}</tbody></table>`).querySelector('tr');

const heard = {
  row({id, html}) {
    const row = makeRow(html), old = rowOf(id);
    if (!old) {
      body.append(row);
    } else {
      if (row.dataset.state === 'idle' || row.dataset.state === 'busy') row.querySelector('.usage').replaceWith(old.querySelector('.usage'));
      const focus = focusIn(old);
      old.replaceWith(row);
      focus(row);
    }
    filter();
  },
  usage({id, html}) {
    rowOf(id)?.querySelector('.usage').replaceChildren(fragment(html));
  },
  order(ids) {
    for (const row of [...body.rows].filter(({dataset}) => !ids.includes(dataset.id))) {
      pass(row, (row.nextElementSibling ?? row.previousElementSibling)?.querySelector('a') ?? search);
      row.remove();
    }
    ids.forEach((id, i) => {
      const row = rowOf(id);
      if (row && body.rows[i] !== row) {
        const focus = focusIn(row);
        body.insertBefore(row, body.rows[i] ?? null);
        focus(row);
      }
    });
    none.hidden = ids.length > 0;
    table.hidden = ids.length === 0;
    filter();
  },
};
subscribe('sessions', '', (event, data) => heard[event]?.(data));

// focusIn remembers where in a row the focus is, and returns how to put it back.
function focusIn(row) {
  const at = document.activeElement;
  if (!row.contains(at)) return () => {};
  return (now) => ((at === row ? now : at.dataset.act && now.querySelector(`[data-act=${at.dataset.act}]`)) || now.querySelector('a')).focus();
}

function filter() {
  const words = search.value.toLowerCase().split(/\s+/).filter(Boolean);
  for (const row of body.rows) {
    const text = `${row.cells[0].innerText} ${row.cells[1].textContent} ${row.cells[2].textContent}`.toLowerCase();
    row.hidden = !words.every((word) => text.includes(word));
  }
  unfound.hidden = words.length === 0 || visible().length > 0;
}
search.addEventListener('input', filter);
search.addEventListener('keydown', (event) => {
  if (event.key === 'Escape') {
    search.value = '';
    filter();
    search.blur();
  } else if (event.key === 'Enter' || event.key === 'ArrowDown') {
    event.preventDefault();
    const first = visible()[0]?.querySelector('a');
    if (event.key === 'Enter' && search.value.trim() && visible().length === 1) first.click();
    else first?.focus();
  }
});
if (!matchMedia('(pointer: coarse), (max-width: 40rem)').matches) search.placeholder += '  /'; // a phone has no such key

const questions = {
  restart: (id) => confirm(`Restart ${id}?`, 'Its variables and what it runs are lost. Files and history are kept.', 'Restart'),
  close: (id) => confirm(`Close ${id}?`, 'Its kernel is stopped and its variables are lost. Files and history are kept.', 'Close'),
  delete: (id) => confirm(`Delete ${id}?`, 'Its files and its history are deleted, for good.', 'Delete'),
  interrupt: () => true,
};
const paths = {restart: 'restart', close: 'close', delete: 'close?files=delete'};

body.addEventListener('click', async (event) => {
  const button = event.target.closest('[data-act]');
  if (!button) return;
  const {act} = button.dataset, {id} = button.closest('tr').dataset;
  if (!await questions[act](id)) return;
  if (button.ariaDisabled === 'true') return;
  button.ariaDisabled = 'true';
  await (act === 'interrupt' ? interrupt(id, Number(button.dataset.cell)) : attempt(() => post(`/s/${id}/${paths[act]}`)));
  button.ariaDisabled = 'false';
  orElse(rowOf(id)?.querySelector('a'));
});

const form = document.getElementById('new-form');
async function begin() {
  const id = await beginSession(form);
  if (id) location.assign(`/s/${id}#code`);
}
document.getElementById('new')?.addEventListener('click', begin);

const visible = () => [...body.rows].filter((row) => !row.hidden);
function move(by) {
  const rows = visible();
  const at = rows.indexOf(document.activeElement?.closest('tr'));
  rows[Math.max(0, Math.min(rows.length - 1, at < 0 ? 0 : at + by))]?.querySelector('a').focus();
}

keys({
  '/': ['Search', () => search.focus()],
  j: ['Next session', () => move(1)],
  k: ['Previous session', () => move(-1)],
  Enter: ['Open session', () => document.activeElement?.closest('tr')?.querySelector('a')?.click()],
});
if (form) keys({n: ['New session', begin]});
