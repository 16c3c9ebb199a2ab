// What every page has.
import './times.js';
import {keys} from './keys.js';
import {onLink} from './live.js';

const state = document.getElementById('link-state');
onLink((up) => {
  if (state) state.textContent = up ? '' : 'Reconnecting…';
});

keys({'g s': ['Sessions', () => location.assign('/')]});
