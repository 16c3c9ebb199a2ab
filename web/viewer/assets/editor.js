// The editor of the session page: a person's own cells.
import {onDesk} from './desk.js';
import {post} from './send.js';
import {attempt, tell} from './toast.js';
import {restoreCells} from './restore.js';
import {fragment} from './fragment.js';
import {keys} from './keys.js';
import * as text from './editor-text.js';
import {Completion} from './editor-completion.js';
import {expect} from './editor-ended.js';
import {Earlier} from './editor-history.js';
import {Prompt} from './editor-prompt.js';

const editor = document.getElementById('editor');
if ('may' in editor.dataset) start(document.getElementById('session').dataset.id);

function start(id) {
  const area = document.getElementById('code');
  const note = document.getElementById('editor-note');
  const help = document.getElementById('code-help');
  const restore = document.getElementById('restore');
  const indent = ' '.repeat(editor.dataset.indent);
  const say = (words) => { note.textContent = words; };
  const completion = new Completion(area, document.getElementById('matches'), id, (error) => say(error.message));
  const earlier = new Earlier(id);
  const draft = `draft:${document.querySelector('meta[name=csrf]').dataset.visitor}:${id}`; // who signs in next in this tab does not see it
  const prompt = new Prompt(document.getElementById('prompt'), id, area, `${draft}:answer`);
  let sending = Promise.resolve(); // cells go out in the order in which they were run

  function set(code) {
    text.insert(area, code, 0, area.value.length);
  }

  document.getElementById('cells').addEventListener('click', ({target}) => { // a cell that waits need not run
    const cell = target.closest('.takeback')?.closest('.cell');
    if (cell) attempt(() => post(`/s/${id}/takeback`, {cell: Number(cell.dataset.n)}));
  });

  // run runs what is written; to go on, the editor is empty behind it.
  function run(goOn) {
    const code = area.value;
    if (!code.trim()) return;
    completion.close();
    help.hidden = true;
    earlier.leave();
    if (goOn) set('');
    say('');
    document.dispatchEvent(new Event('cell-run'));
    sending = sending.then(async () => {
      try {
        expect((await post(`/s/${id}/run`, {code})).number);
      } catch (error) {
        tell.problem(error);
        if (goOn && area.value === '') text.putBack(area, code); // nothing that was written is lost
      }
    });
  }

  async function explain() {
    const code = area.value, at = area.selectionStart;
    say('');
    try {
      const {html} = await post(`/s/${id}/inspect`, {code, cursor: text.points(code.slice(0, at))});
      if (area.value !== code) return;
      help.replaceChildren(fragment(html));
      help.hidden = html === '';
      help.scrollTop = 0;
      say(html === '' ? 'The kernel knows nothing of this' : '');
    } catch (error) {
      say(error.message);
    }
  }

  document.addEventListener('session-idle', () => say('')); // what could not be told while a cell ran can be asked for now

  async function recall(by) {
    const code = await attempt(() => earlier.step(by, area.value));
    if (code === undefined) return;
    set(code);
    const at = by > 0 ? code.length : 0;
    area.setSelectionRange(at, at);
  }

  function tab(event) {
    const some = area.selectionStart !== area.selectionEnd;
    const atStart = text.beforeCursor(area).trim() === '';
    if (event.shiftKey) {
      if (some || (atStart && text.beforeCursor(area) !== '')) text.shallower(area, indent);
      else explain();
    } else if (some) {
      text.deeper(area, indent);
    } else if (atStart || /\s$/.test(text.beforeCursor(area))) {
      text.insert(area, indent.slice(text.beforeCursor(area).length % indent.length));
    } else {
      say('');
      completion.ask();
    }
  }

  area.addEventListener('keydown', (event) => {
    if (event.isComposing) return;
    const command = event.ctrlKey || event.metaKey;
    const plain = !command && !event.altKey && !event.shiftKey && area.selectionStart === area.selectionEnd;
    let taken = true;
    if (completion.open && completion.key(event)) { /* it was for the list */ }
    else if (event.key === 'Enter' && command) run(false);
    else if (event.key === 'Enter' && event.shiftKey) run(true);
    else if (event.key === 'Enter' && !event.altKey) text.newline(area, indent);
    else if (event.key === 'Tab' && !command && !event.altKey) tab(event);
    else if (event.key === '/' && command && editor.dataset.comment) text.comment(area, editor.dataset.comment);
    else if (event.key === 'Escape' && !help.hidden) help.hidden = true;
    else if (event.key === 'Escape') area.blur();
    else if (event.key === 'ArrowUp' && plain && text.onFirstLine(area)) recall(1);
    else if (event.key === 'ArrowDown' && plain && text.onLastLine(area) && earlier.at >= 0) recall(-1);
    else if (event.key === 'Backspace' && plain) taken = text.backspace(area, indent);
    else taken = false;
    if (taken) event.preventDefault();
  });

  area.addEventListener('input', () => {
    text.grow(area);
    say('');
    help.hidden = true;
    if (completion.open) completion.filter();
    try {
      sessionStorage.setItem(draft, area.value);
    } catch {
      // a text that is too large to keep is not kept
    }
  });
  area.addEventListener('blur', (event) => {
    completion.close();
    if (event.relatedTarget !== help) help.hidden = true;
  });
  help.addEventListener('keydown', (event) => {
    if (event.key !== 'Escape') return;
    help.hidden = true;
    area.focus();
  });

  async function runAgain(button) {
    if (button.ariaDisabled === 'true') return;
    button.ariaDisabled = 'true';
    await attempt(async () => {
      const {number} = await post(`/s/${id}/cells/${button.closest('.cell').dataset.n}/run`);
      expect(number);
      document.dispatchEvent(new CustomEvent('cell-run', {detail: {number}}));
    });
    button.ariaDisabled = 'false';
  }

  document.getElementById('run').addEventListener('click', () => { run(true); area.focus(); });
  document.getElementById('cells').addEventListener('click', ({target}) => { if (target.matches('.again')) runAgain(target); });
  restore.addEventListener('click', () => restoreCells(id));

  area.value = sessionStorage.getItem(draft) ?? '';
  text.grow(area);
  if (location.hash === '#code') area.focus(); // where a page is loaded again, no browser does it
  keys({
    e: ['Write a cell', () => area.focus()],
    'Shift Enter': ['Run what is written, and go on', () => {}],
    'Ctrl Enter': ['Run what is written, and keep it', () => {}],
  });

  onDesk((desk) => {
    prompt.show(desk.prompt);
    earlier.forget();
  });
}
