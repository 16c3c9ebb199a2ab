// The one stream of all tabs of a browser. A tab says what it wants and gets its own; when it has gone, the lock that it held is
// free, and its subscriptions end.
import {Stream} from './stream.js';

const owners = new Map(); // subscription → port
const ports = new Set();
let link = '';

const stream = new Stream(
  (id, event, data, after) => owners.get(id)?.postMessage({id, event, data, after}),
  (state) => {
    link = state;
    for (const port of ports) port.postMessage({link: state});
  },
);

function leave(port) {
  ports.delete(port);
  for (const [id, owner] of owners) {
    if (owner === port) drop(id);
  }
}

function drop(id) {
  owners.delete(id);
  stream.remove(id);
}

globalThis.onconnect = ({ports: [port]}) => {
  ports.add(port);
  if (link) port.postMessage({link});
  port.onmessage = ({data}) => {
    if (data.csrf) {
      if (link === 'signedout') { // and is signed in again
        link = '';
        stream.resume(data.csrf);
      } else {
        stream.csrf = data.csrf;
      }
    } else if (data.add) {
      ports.add(port);
      owners.set(data.add.id, port);
      stream.add(data.add);
    } else if (data.remove) {
      drop(data.remove);
    } else if (data.leave) {
      leave(port);
    } else if (data.lock) {
      navigator.locks.request(data.lock, () => leave(port));
    }
  };
};
