// Earlier cells of the session, for the arrow keys at the edges of the editor.
import {get} from './send.js';

export class Earlier {
  constructor(id) {
    this.id = id;
    this.codes = null; // the newest first; null: to be fetched
    this.at = -1; // -1 is what is being written
    this.draft = '';
  }

  // forget has the next look fetch them again.
  forget() {
    if (this.at < 0) this.codes = null;
  }

  leave() {
    this.at = -1;
    this.codes = null;
  }

  // step goes to an older cell (1) or a newer one (-1), and returns its code; undefined where there is none.
  async step(by, current) {
    if (this.at < 0 && by < 0) return undefined;
    if (!this.codes) this.codes = (await get(`/s/${this.id}/earlier`)).map((cell) => cell.code);
    if (this.at < 0) this.draft = current;
    if (this.at + by >= this.codes.length) return undefined;
    this.at += by;
    return this.at < 0 ? this.draft : this.codes[this.at];
  }
}
