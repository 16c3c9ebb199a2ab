// The list of what could stand at the cursor. The focus stays in the text; the list is steered by keys, or a pointer.
import {post} from './send.js';
import {caret, insert, offset, points} from './editor-text.js';

export class Completion {
  constructor(area, list, id, problem) {
    Object.assign(this, {area, list, id, problem, matches: [], shown: [], at: 0, asked: 0});
    list.addEventListener('mousedown', (event) => {
      event.preventDefault(); // the focus stays
      const option = event.target.closest('li');
      if (option) this.take([...list.children].indexOf(option));
    });
  }

  get open() { return !this.list.hidden; }

  // ask asks the kernel. What was typed meanwhile makes its answer worthless.
  async ask() {
    const {area} = this;
    const code = area.value, cursor = area.selectionStart, asked = ++this.asked;
    let answer;
    try {
      answer = await post(`/s/${this.id}/complete`, {code, cursor: points(code.slice(0, cursor))});
    } catch (error) {
      this.problem(error);
      return;
    }
    if (asked !== this.asked || area.value !== code || area.selectionStart !== cursor) return;
    this.from = offset(code, answer.start);
    this.to = offset(code, answer.end);
    this.matches = answer.matches;
    if (this.matches.length === 1) {
      this.replace(this.matches[0].text);
      return;
    }
    if (this.matches.length === 0) this.problem(new Error('Nothing fits here'));
    this.filter();
  }

  // filter shows what still fits what stands before the cursor by now.
  filter() {
    const {area} = this;
    const typed = area.value.slice(this.from, area.selectionStart).toLowerCase();
    this.to = Math.max(this.to, area.selectionStart);
    this.shown = area.selectionStart < this.from ? [] : this.matches.filter((m) => m.text.toLowerCase().startsWith(typed));
    if (this.shown.length === 0) {
      this.close();
      return;
    }
    this.at = 0;
    const common = typed.lastIndexOf('.') + 1; // what all have in common need not be read
    this.list.replaceChildren(...this.shown.map((match, i) => {
      const option = document.createElement('li');
      option.id = `match-${i}`;
      option.setAttribute('role', 'option');
      option.append(Object.assign(document.createElement('span'), {textContent: match.text.slice(common)}));
      if (match.kind) option.append(Object.assign(document.createElement('span'), {textContent: match.kind, className: 'kind'}));
      return option;
    }));
    this.place(common);
    this.mark();
  }

  place(common) {
    const {area, list} = this;
    const at = caret(area, this.from + common);
    list.hidden = false;
    list.style.left = `${Math.max(0, Math.min(at.left - 8, area.clientWidth - list.offsetWidth))}px`;
    const below = innerHeight - area.getBoundingClientRect().top - at.bottom;
    const up = below < Math.min(list.scrollHeight, 240) + 12;
    list.style.top = up ? 'auto' : `${at.bottom + 4}px`;
    list.style.bottom = up ? `${area.offsetHeight - at.top + 4}px` : 'auto';
  }

  mark() {
    [...this.list.children].forEach((option, i) => option.setAttribute('aria-selected', i === this.at));
    const chosen = this.list.children[this.at];
    chosen.scrollIntoView({block: 'nearest'});
    this.area.setAttribute('aria-activedescendant', chosen.id);
  }

  close() {
    this.asked++;
    this.list.hidden = true;
    this.list.replaceChildren();
    this.area.removeAttribute('aria-activedescendant');
  }

  replace(text) {
    const to = this.to;
    this.close();
    insert(this.area, text, this.from, to);
  }

  take(i) { this.replace(this.shown[i].text); }

  // key deals with a key while the list is open, and tells whether it was for the list.
  key(event) {
    const last = this.shown.length - 1;
    switch (event.key) {
      case 'ArrowDown': this.at = this.at === last ? 0 : this.at + 1; break;
      case 'ArrowUp': this.at = this.at === 0 ? last : this.at - 1; break;
      case 'PageDown': this.at = Math.min(last, this.at + 10); break;
      case 'PageUp': this.at = Math.max(0, this.at - 10); break;
      case 'Enter':
      case 'Tab':
        if (event.ctrlKey || event.metaKey || event.shiftKey) return false;
        this.take(this.at);
        return true;
      case 'Escape': this.close(); return true;
      case 'ArrowLeft': case 'ArrowRight': case 'Home': case 'End': this.close(); return false;
      default: return false;
    }
    this.mark();
    return true;
  }
}
