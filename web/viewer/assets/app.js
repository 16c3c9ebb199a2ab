// What every page has.
import {hold} from './times.js';
import {keys} from './keys.js';
import {onLink} from './live.js';

const state = document.getElementById('link-state');
onLink((up) => {
  if (state) state.textContent = up ? '' : 'Reconnecting…';
  document.documentElement.classList.toggle('unheard', !up);
  hold(!up);
});

keys({'g s': ['Sessions', () => location.assign('/')]});
