// What a cell asks by input(): it is answered where cells are written, by who may run them.
import {post} from './send.js';
import {tell} from './toast.js';

export class Prompt {
  constructor(form, id, back) {
    Object.assign(this, {form, id, back, open: null});
    this.line = form.querySelector('input');
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
    if (!prompt) {
      if (held) this.back();
      return;
    }
    document.getElementById('prompt-cell').textContent = prompt.cell;
    document.getElementById('prompt-text').textContent = prompt.text;
    this.line.type = prompt.password ? 'password' : 'text';
    const free = document.activeElement === document.body || document.activeElement.closest('#editor, #main') === document.activeElement ||
      document.activeElement.id === 'code' || document.activeElement.id === 'run';
    if (held || free) this.line.focus();
  }

  async answer() {
    const {open, line} = this;
    if (!open) return;
    const text = line.value;
    line.value = '';
    try {
      await post(`/s/${this.id}/answer`, {cell: open.cell, prompt: open.id, line: text});
    } catch (error) {
      tell.problem(error);
    }
  }
}
