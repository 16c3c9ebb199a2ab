// Stream keeps one EventSource for any number of subscriptions. It runs in the SharedWorker that all tabs of a browser have,
// or, where there is none, in a page of its own.
//
// A subscription is {id, topic, after}. The server sends, with each event, where its subscription then stands; when the list
// changes, a new EventSource goes on from there, so that nothing is missed and nothing comes twice.
const most = 256; // subscriptions of one stream: more are refused

export class Stream {
  #subscriptions = new Map();
  #source = null;
  #changing = 0;
  #wait = 1000;
  #deliver;
  #link;

  // deliver(id, event, data, after) gets what comes; link(state) gets 'up', 'down' or 'signedout'.
  constructor(deliver, link) {
    this.#deliver = deliver;
    this.#link = link;
  }

  add(subscription) {
    this.#subscriptions.set(subscription.id, subscription);
    this.#change();
  }

  remove(id) {
    if (this.#subscriptions.delete(id)) this.#change();
  }

  // #change opens a stream for the list as it is, once for all changes that come together.
  #change() {
    clearTimeout(this.#changing);
    this.#changing = setTimeout(() => this.#open(), 5);
  }

  #open() {
    this.#source?.close();
    this.#source = null;
    const list = [...this.#subscriptions.values()].slice(-most); // who has more tabs has the newest of them live
    if (list.length === 0) return;
    const query = new URLSearchParams();
    for (const s of list) {
      query.append('topic', s.topic);
      query.append('after', s.after);
    }
    const source = this.#source = new EventSource(`/live?${query}`);
    source.onopen = () => {
      this.#wait = 1000;
      this.#link('up');
    };
    source.onmessage = (message) => {
      const {sub, after, event, data} = JSON.parse(message.data);
      list[sub].after = after;
      this.#deliver(list[sub].id, event, data, after);
    };
    source.addEventListener('signedout', () => {
      source.close();
      this.#link('signedout');
    });
    source.onerror = () => {
      this.#link('down');
      if (source.readyState === EventSource.CLOSED) this.#refused(source);
    };
  }

  // #refused finds out what a stream that does not come back by itself has met: the end of the sign-in, or a server that is not
  // itself yet.
  async #refused(source) {
    const answer = await fetch('/live/state', {headers: {Accept: 'application/json'}}).catch(() => null);
    if (this.#source !== source) return;
    if (answer?.status === 401) {
      this.#link('signedout');
      return;
    }
    clearTimeout(this.#changing);
    this.#changing = setTimeout(() => this.#open(), this.#wait);
    this.#wait = Math.min(this.#wait * 2, 15000);
  }
}
