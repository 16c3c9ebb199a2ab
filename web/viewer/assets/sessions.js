// The list of sessions: live, searched, and moved through by keys.
import {subscribe} from './live.js';
import {fragment} from './fragment.js';
import {keys} from './keys.js';
import {post} from './send.js';
import {confirm} from './dialog.js';
import {attempt, tell} from './toast.js';

const table = document.getElementById('sessions');
const body = table.tBodies[0];
const none = document.getElementById('none');
const search = document.getElementById('search');

const rowOf = (id) => body.querySelector(`tr[data-id="${CSS.escape(id)}"]`);

// A row alone is no HTML; a table around it is.
const makeRow = (html) => fragment(`<table><tbody>${html}</tbody></table>`).querySelector('tr');

subscribe('sessions', '', (event, data) => {
  if (event === 'row') {
    const row = makeRow(data.html), old = rowOf(data.id);
    const had = old?.contains(document.activeElement) ? document.activeElement.dataset.act ?? document.activeElement.tagName : '';
    if (old) old.replaceWith(row); else body.append(row);
    if (had) (row.querySelector(`[data-act="${had}"]`) ?? (had === 'TR' ? row : row.querySelector('a'))).focus();
    filter();
  } else if (event === 'order') {
    for (const row of [...body.rows]) if (!data.includes(row.dataset.id)) row.remove();
    data.forEach((id, i) => {
      const row = rowOf(id);
      if (row && body.rows[i] !== row) body.insertBefore(row, body.rows[i] ?? null);
    });
    none.hidden = data.length > 0;
  }
});

function filter() {
  const words = search.value.toLowerCase().split(/\s+/).filter(Boolean);
  for (const row of body.rows) row.hidden = !words.every((word) => row.textContent.toLowerCase().includes(word));
}
search.addEventListener('input', filter);

const questions = {
  restart: (id) => confirm(`Restart ${id}?`, 'Its variables and what it runs are lost. Files and history are kept.', 'Restart'),
  close: (id) => confirm(`Close ${id}?`, 'Its kernel is stopped and its variables are lost. Files and history are kept.', 'Close'),
  interrupt: () => true,
};

body.addEventListener('click', async (event) => {
  const act = event.target.closest('[data-act]')?.dataset.act;
  if (!act) return;
  const {id} = event.target.closest('tr').dataset;
  if (await questions[act](id)) await attempt(() => post(`/s/${id}/${act}`));
});

const visible = () => [...body.rows].filter((row) => !row.hidden);
function move(by) {
  const rows = visible();
  const at = rows.indexOf(document.activeElement?.closest('tr'));
  rows[Math.max(0, Math.min(rows.length - 1, at < 0 ? 0 : at + by))]?.focus();
}

keys({
  '/': ['Search', () => search.focus()],
  j: ['Next session', () => move(1)],
  k: ['Previous session', () => move(-1)],
  Enter: ['Open session', () => document.activeElement?.closest('tr')?.querySelector('a')?.click()],
});
