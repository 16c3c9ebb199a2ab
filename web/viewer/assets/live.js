// subscribe follows a topic from a cursor on, '' for its beginning, and calls heard(event, data) for each of its events, in
// order, none twice. It returns a function that ends it. All tabs of a browser share one connection.
import {script} from './fragment.js';
import {csrf, onSignedIn, signedOut} from './signed-out.js';
import {Stream} from './stream.js';

const subscriptions = new Map(); // id → {topic, after, heard}
const linkHearers = new Set();
let up = true;

const tab = crypto.getRandomValues(new Uint32Array(4)).join('-');
let count = 0;
const transport = open();

export function subscribe(topic, after, heard) {
  const id = `${tab}-${++count}`;
  const s = {id, topic, after: after ?? '', heard};
  subscriptions.set(id, s);
  transport.add({id, topic, after: s.after});
  return () => {
    subscriptions.delete(id);
    transport.remove(id);
  };
}

// onLink calls heard(true) when the server can be heard, and heard(false) when it cannot.
export function onLink(heard) {
  linkHearers.add(heard);
  heard(up);
}

function deliver(id, event, data, after) {
  const s = subscriptions.get(id);
  if (!s) return;
  s.after = after;
  s.heard(event, data);
}

function linked(state) {
  if (state === 'signedout') signedOut();
  up = state === 'up';
  for (const heard of linkHearers) heard(up);
}

function open() {
  if (globalThis.SharedWorker) {
    try {
      return shared();
    } catch {
      // then each page has its own
    }
  }
  const stream = Object.assign(new Stream(deliver, linked), {csrf: csrf()});
  onSignedIn(() => stream.resume(csrf()));
  return stream;
}

function shared() {
  const {port} = new SharedWorker(script('./live-worker.js'), {type: 'module', name: csrf().slice(0, 8)});
  port.onmessage = ({data}) => (data.link ? linked(data.link) : deliver(data.id, data.event, data.data, data.after));
  port.postMessage({csrf: csrf()});
  onSignedIn(() => port.postMessage({csrf: csrf()}));
  navigator.locks?.request(tab, () => { // held while this page lives; the worker gets it when it does no more
    port.postMessage({lock: tab});
    return new Promise(() => {});
  });
  addEventListener('pagehide', () => port.postMessage({leave: true}));
  addEventListener('pageshow', (event) => {
    if (!event.persisted) return;
    for (const {id, topic, after} of subscriptions.values()) port.postMessage({add: {id, topic, after}});
  });
  return {add: (add) => port.postMessage({add}), remove: (remove) => port.postMessage({remove})};
}
