// What the session is made of, and what it uses: the server knows it without its kernel, also while a cell runs.
import {Part} from './panel-part.js';

const pause = 4000; // ms until what is used is looked at again

class Details extends Part {
  alwaysKnown = true;

  show() {
    this.old = true; // what it uses has changed since it was seen
    super.show();
    this.ticking = setInterval(() => { if (getSelection()?.type !== 'Range') this.stale(); }, pause); // who copies something keeps it
  }

  hide() {
    super.hide();
    clearInterval(this.ticking);
  }
}

export const details = (id) => new Details(document.getElementById('details'), () => `/s/${id}/details`);
