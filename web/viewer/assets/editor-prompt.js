// What a cell asks by input(): it is answered where cells are written, by who may run them.
import {post} from './send.js';
import {tell} from './toast.js';

export class Prompt {
  // area is where code is written. Who has written in it since a cell went out still writes, even where all of it is deleted again. draft
  // names what is kept of an answer that is being written, for a page that is loaded again.
  constructor(form, id, area, draft) {
    Object.assign(this, {form, id, area, draft, open: null, writes: false});
    this.line = form.querySelector('input');
    this.said = document.getElementById('prompt-said');
    area.addEventListener('input', () => { this.writes = true; });
    area.addEventListener('blur', () => { this.writes = false; });
    document.addEventListener('cell-run', () => { this.writes = false; });
    this.line.addEventListener('input', () => this.keep());
    form.addEventListener('submit', (event) => {
      event.preventDefault();
      this.answer();
    });
  }

  // show shows what is asked, or that nothing is any more.
  show(prompt) {
    if (this.open?.id === prompt?.id) return;
    const held = this.form.contains(document.activeElement);
    this.open = prompt ?? null;
    this.form.hidden = !prompt;
    this.line.value = '';
    this.said.textContent = '';
    if (!prompt) {
      if (held) this.area.focus();
      return;
    }
    document.getElementById('prompt-cell').textContent = prompt.cell;
    document.getElementById('prompt-text').textContent = prompt.text;
    this.line.type = prompt.password ? 'password' : 'text';
    this.line.value = this.kept();
    if (held || this.free()) this.line.focus();
    else this.said.textContent = this.form.querySelector('label').textContent; // where the focus goes there, its label is read
  }

  // free tells whether nobody is about to do something where the focus is: code that is half written is no answer.
  free() {
    const at = document.activeElement;
    if (at === this.area) return at.value === '' && !this.writes;
    return at === document.body || at.matches('#editor, #main, #run');
  }

  // keep keeps what is written, but no password; kept is that, if it answers what is asked.
  keep() {
    const {open, line, draft} = this;
    try {
      sessionStorage.setItem(draft, JSON.stringify({to: open.id, text: open.password ? '' : line.value}));
    } catch { /* a text that is too large to keep is not kept */ }
  }

  kept() {
    const {to, text} = JSON.parse(sessionStorage.getItem(this.draft)) ?? {};
    return to === this.open.id ? text : '';
  }

  async answer() {
    const {open, line} = this;
    if (!open) return;
    const text = line.value;
    line.value = '';
    this.keep();
    try {
      await post(`/s/${this.id}/answer`, {cell: open.cell, prompt: open.id, line: text});
    } catch (error) {
      tell.problem(error);
      if (this.open !== open || line.value) return;
      line.value = text; // nothing that was written is lost
      this.keep();
    }
  }
}
