// A part of the panel that shows what the server says: when it is first seen, and again when it is seen and out of date.
import {send} from './send.js';
import {fragment} from './fragment.js';
import {keep} from './focus.js';

export class Part {
  constructor(into, address) {
    Object.assign(this, {into, address, seen: false, old: true, asked: 0, loading: 0, late: false});
  }

  show() {
    this.seen = true;
    if (this.old) this.load();
  }

  hide() { this.seen = false; }

  // stale has it asked for again, behind what is being asked for: news may come faster than answers, none of which would be shown.
  stale() {
    this.old = true;
    if (!this.seen) return;
    if (this.loading) this.late = true;
    else this.load();
  }

  async load() {
    this.loading++;
    this.late = false;
    await this.ask();
    if (--this.loading === 0 && this.late) this.stale();
  }

  // ask shows what the server says now. A kernel that is busy says nothing: what was known before stays, and where nothing was, that
  // is said.
  async ask() {
    this.old = false;
    const asked = ++this.asked;
    let shown;
    try {
      const answer = await send(this.address());
      if (answer.status === 204) {
        this.old = true;
        if (!this.into.firstElementChild?.matches('.empty')) return;
        shown = remark('Known when the cell ends.');
      } else {
        shown = fragment(await answer.text());
      }
    } catch (error) {
      shown = remark(this.excuse(error));
    }
    if (asked !== this.asked) return;
    keep(this.into.closest('[role=tabpanel]'), () => this.into.replaceChildren(shown));
    if (this.into.querySelector('[data-again]')) setTimeout(() => this.again(asked), 5000);
  }

  // again asks once more what took too long, unless somebody has asked meanwhile.
  again(asked) {
    if (asked !== this.asked) return;
    this.old = true;
    if (this.seen) this.load();
  }

  excuse(error) { return error.message; }
}

const remark = (text) => Object.assign(document.createElement('p'), {className: 'empty', textContent: text});
