// The head of the session page: its state, live, and what stops it.
import './find.js';
import {subscribe} from './live.js';
import {goTo} from './cells.js';
import {interrupt} from './interrupt.js';
import {keys} from './keys.js';
import {post} from './send.js';
import {confirm} from './dialog.js';
import {attempt, tell} from './toast.js';
import {write} from './times.js';

const session = document.getElementById('session');
const {id} = session.dataset;
const part = (name) => document.getElementById(name);
let now = {}, unseen = false; // whether a cell has ended while nobody looked

// Whether the server can be heard is said where one always sees it.
part('lost').after(part('link-state'));

// The parts of the page that stay in sight have their places between its head and its foot.
for (const [name, node] of Object.entries({bar: document.querySelector('.session-bar'), foot: document.querySelector('.foot')})) {
  new ResizeObserver(() => document.documentElement.style.setProperty(`--${name}`, `${node.offsetHeight}px`)).observe(node);
}

subscribe(session.dataset.topic, '', (event, data) => {
  if (event !== 'state') return;
  if (data.began && data.began !== session.dataset.began) anew();
  const ended = now.running && !data.running;
  now = data;
  session.dataset.generation = data.generation;
  part('state').textContent = data.queue ? `${data.plain}, ${data.queue} waiting` : data.plain;
  part('state').className = `state ${data.state}`;
  part('lost').textContent = data.lost;
  part('elapsed').dateTime = data.since;
  part('elapsed').textContent = '';
  write(part('elapsed').parentElement);
  part('running').hidden = !data.running;
  part('interrupt')?.setAttribute('aria-disabled', String(!data.running)); // a button that is disabled loses the focus
  part('restart')?.setAttribute('aria-disabled', String(data.state === 'closed'));
  if (data.running) unseen = false;
  else if (ended) unseen = document.hidden;
  entitle();
  if (ended) document.dispatchEvent(new Event('session-idle'));
});

// The title says to who looks at another tab what a cell does: that it runs, asks, or, until somebody looks, how the last one ended.
function entitle() {
  let sign = '';
  if (now.running) sign = now.asks ? '? ' : '● ';
  else if (unseen) sign = now.failed ? '✗ ' : '✓ ';
  document.title = `${sign}${id} · cellblock`;
}
document.addEventListener('visibilitychange', () => {
  if (document.hidden) return;
  unseen = false;
  entitle();
});

// anew shows another session that has the name now. What is being written stays, and so does the cursor in it.
function anew() {
  if (document.activeElement?.id === 'code') history.replaceState(null, '', '#code');
  location.reload();
}

const stop = () => { if (now.running) interrupt(id, now.running); };
async function restart() {
  if (part('restart').ariaDisabled === 'true') return;
  if (!await confirm(`Restart ${id}?`, 'Its variables and what it runs are lost. Files and history are kept.', 'Restart')) return;
  await attempt(async () => {
    await post(`/s/${id}/restart`);
    tell('The kernel was restarted.'); // of one that has run nothing, nothing else says so
  });
}
part('interrupt')?.addEventListener('click', stop);
part('restart')?.addEventListener('click', restart);
part('running').addEventListener('click', () => goTo(now.running));
keys({
  r: ['The cell that runs', () => { if (now.running) goTo(now.running); }],
  'i i': ['Interrupt', () => { if (part('interrupt')) stop(); }],
});
