// How the session is: onDesk calls heard(desk) with what the server last said of it, and whenever it says more.
import {subscribe} from './live.js';

const hearers = new Set();
let last = null;

export function onDesk(heard) {
  hearers.add(heard);
  if (last) heard(last);
}

subscribe(`desk:${document.getElementById('session').dataset.id}`, '', (event, desk) => {
  if (event !== 'desk') return;
  last = desk;
  for (const heard of hearers) heard(desk);
});
