// Stream keeps one EventSource for any number of subscriptions. It runs in the SharedWorker that all tabs of a browser have,
// or, where there is none, in a page of its own.
//
// A subscription is {id, topic, after}. The server sends, with each event, where its subscription then stands. When the list changes
// it is told so, and the stream of all others goes on; when the connection is lost, or the server knows the stream no more, a new
// EventSource goes on from where each stands, so that nothing is missed and nothing comes twice. A connection whose path has died is
// lost as well, though no browser says so: nothing comes of it, not even the beat that the server sends every 15 seconds.
const most = 256; // subscriptions of one stream: more are refused
const silence = 40_000; // ms without a word of a stream that is lost
const patience = 10_000; // ms that an answer may take

export class Stream {
  csrf = ''; // the token of the pages' sign-in

  #subscriptions = new Map();
  #source = null;
  #name = ''; // the server's, of the source
  #numbered = []; // the source's subscriptions, by number; null for those that have ended
  #asking = false;
  #changing = 0;
  #wait = 1000;
  #silent = 0; // ends a source that is not heard
  #deliver;
  #link;

  // deliver(id, event, data, after) gets what comes; link(state) gets 'up', 'down' or 'signedout'.
  constructor(deliver, link) {
    this.#deliver = deliver;
    this.#link = link;
  }

  add(subscription) {
    this.#subscriptions.set(subscription.id, subscription);
    this.#later(() => this.#settle(), 5); // once for all changes that come together
  }

  remove(id) {
    if (this.#subscriptions.delete(id)) this.#later(() => this.#settle(), 5);
  }

  // resume goes on where a sign-in had ended, with the token of the next.
  resume(csrf) {
    this.csrf = csrf;
    this.#wait = 1000;
    this.#open();
  }

  #later(run, wait) {
    clearTimeout(this.#changing);
    this.#changing = setTimeout(run, wait);
  }

  // #list is what is wanted: who has more tabs has the newest of them live.
  #list() { return [...this.#subscriptions.values()].slice(-most); }

  // #settle has the stream carry the list as it is. One change is on its way at a time.
  async #settle() {
    if (this.#asking) return;
    const source = this.#source, list = this.#list();
    const add = list.filter((s) => !this.#numbered.includes(s));
    const remove = [...this.#numbered.keys()].filter((n) => this.#numbered[n] && !list.includes(this.#numbered[n]));
    if (add.length + remove.length === 0 && source?.readyState !== EventSource.CLOSED) return;
    if (!this.#name || list.length === 0) {
      this.#open();
      return;
    }
    const change = {stream: this.#name, first: this.#numbered.length, add: add.map(({topic, after}) => ({topic, after})), remove};
    this.#numbered.push(...add);
    for (const n of remove) this.#numbered[n] = null;
    this.#asking = true;
    const changed = await this.#ask(change).catch(() => false);
    this.#asking = false;
    if (!changed && source === this.#source) this.#open();
    else this.#settle();
  }

  async #ask(change) {
    const headers = {'Content-Type': 'application/json', Accept: 'application/json', 'X-CSRF-Token': this.csrf};
    const answer = await fetch('/live', {method: 'POST', headers, body: JSON.stringify(change), signal: AbortSignal.timeout(patience)});
    return answer.ok && (await answer.json()).changed;
  }

  #open() {
    this.#end(this.#source);
    this.#source = null;
    this.#name = '';
    const list = this.#numbered = this.#list();
    if (list.length === 0) return;
    const query = new URLSearchParams();
    for (const s of list) {
      query.append('topic', s.topic);
      query.append('after', s.after);
    }
    const source = this.#source = new EventSource(`/live?${query}`);
    this.#hear(source);
    source.onopen = () => {
      this.#wait = 1000;
      this.#link('up');
    };
    source.addEventListener('beat', () => this.#hear(source));
    source.addEventListener('stream', ({data}) => {
      this.#hear(source);
      this.#name = JSON.parse(data);
      this.#settle();
    });
    source.onmessage = (message) => {
      this.#hear(source);
      const {sub, after, event, data} = JSON.parse(message.data);
      const s = list[sub];
      if (!s) return; // it was given up
      s.after = after;
      this.#deliver(s.id, event, data, after);
    };
    source.addEventListener('signedout', () => {
      this.#end(source);
      this.#link('signedout');
    });
    source.onerror = () => this.#fail(source);
  }

  // #hear waits for the next word of a source.
  #hear(source) {
    clearTimeout(this.#silent);
    this.#silent = setTimeout(() => this.#fail(source), silence);
  }

  #end(source) {
    clearTimeout(this.#silent);
    source?.close();
  }

  #fail(source) {
    this.#end(source);
    this.#link('down');
    this.#lost(source);
  }

  // #lost finds out what a stream has met that ended: the end of the sign-in, or a server, or a network, that is not itself yet.
  async #lost(source) {
    this.#name = '';
    const answer = await fetch('/live/state', {headers: {Accept: 'application/json'}, signal: AbortSignal.timeout(patience)}).catch(() => null);
    if (this.#source !== source) return;
    if (answer?.status === 401) {
      this.#link('signedout');
      return;
    }
    this.#later(() => this.#open(), this.#wait);
    this.#wait = Math.min(this.#wait * 2, 15000);
  }
}
