// The head of the session page: its state, live.
import {subscribe} from './live.js';

const session = document.getElementById('session');
const state = document.getElementById('state');
subscribe(session.dataset.topic, '', (event, data) => {
  if (event !== 'state') return;
  state.textContent = data.state;
  state.className = `state ${data.state}`;
});
