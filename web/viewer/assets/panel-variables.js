// What code has defined, after each cell.
import {Part} from './panel-part.js';

class Variables extends Part {
  async load() {
    const opened = new Set([...this.into.querySelectorAll('details[open]')].map((d) => d.closest('tr').querySelector('th').textContent));
    await super.load();
    for (const row of this.into.querySelectorAll('tr:has(details)')) {
      if (opened.has(row.querySelector('th').textContent)) row.querySelector('details').open = true;
    }
  }
}

export const variables = (id) => new Variables(document.getElementById('panel-variables'), () => `/s/${id}/variables`);
