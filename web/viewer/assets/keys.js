// keys binds keys: {'j': ['Next', () => …], 'g s': […]}. They are heard outside of what is typed into, without modifiers. The
// list of all that are bound is shown by ?.
import {show} from './dialog.js';

const bound = new Map(); // key → [what it does, how]
let before = '';

export function keys(bindings) {
  for (const [key, binding] of Object.entries(bindings)) bound.set(key, binding);
}

const typing = (target) => target.closest?.('input, textarea, select, [contenteditable], dialog') !== null;

document.addEventListener('keydown', (event) => {
  if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey || typing(event.target)) return;
  const chord = `${before} ${event.key}`;
  before = event.key;
  const binding = bound.get(chord) ?? bound.get(event.key);
  if (!binding || (event.key === 'Enter' && event.target.closest?.('a, button, summary'))) return;
  before = '';
  event.preventDefault();
  binding[1](event);
});

export function help() {
  const list = document.createElement('dl');
  list.className = 'keys';
  for (const [key, [what]] of bound) {
    const term = document.createElement('dt');
    for (const part of key.split(' ')) term.append(Object.assign(document.createElement('kbd'), {textContent: part}), ' ');
    list.append(term, Object.assign(document.createElement('dd'), {textContent: what}));
  }
  show('Keyboard', list);
}

keys({'?': ['This list', help]});
document.querySelector('[data-keys-help]')?.addEventListener('click', help);
