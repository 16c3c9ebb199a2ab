// Files on their way to the session: in parts, one file after the other, with what is left to see.
import {post, send} from './send.js';
import {problem} from './toast.js';
import {pass} from './focus.js';

export class Uploads {
  constructor(id, list, part) {
    Object.assign(this, {id, list, part, last: Promise.resolve()});
  }

  // send sends one file, behind those before it, to get a name in a folder, and resolves when it is there or has failed.
  send(file, name, into) {
    const row = document.createElement('li');
    const progress = Object.assign(document.createElement('progress'), {max: Math.max(1, file.size), value: 0});
    progress.setAttribute('aria-label', `Upload of ${name}`);
    row.append(Object.assign(document.createElement('span'), {textContent: name}), progress);
    this.list.append(row);
    this.last = this.last.then(() => this.bring(file, into + name, progress)).then(() => row.remove(), (error) => {
      progress.remove();
      const close = Object.assign(document.createElement('button'), {textContent: '×', className: 'quiet', onclick: () => {
        pass(row, document.getElementById('upload'));
        row.remove();
      }});
      close.setAttribute('aria-label', 'Dismiss');
      row.append(close, Object.assign(document.createElement('span'), {className: 'failed', textContent: problem(error)}));
    });
    return this.last;
  }

  async bring(file, path, progress) {
    const word = crypto.getRandomValues(new Uint32Array(4)).join('-');
    const to = `/s/${this.id}/upload?path=${encodeURIComponent(path)}&word=${word}`;
    let at = 0;
    do {
      const part = file.slice(at, at + this.part);
      await send(`${to}&offset=${at}`, {method: 'POST', body: part, headers: {'Content-Type': 'application/octet-stream'}});
      at += part.size;
      progress.value = at;
    } while (at < file.size);
    await post(`/s/${this.id}/uploaded?path=${encodeURIComponent(path)}`, {word, size: file.size});
  }
}
