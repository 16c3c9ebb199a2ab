// The files of the session: looked at, fetched, brought and deleted.
import {post, send} from './send.js';
import {attempt, tell} from './toast.js';
import {confirm} from './dialog.js';
import {fragment} from './fragment.js';
import {orElse} from './focus.js';
import {Part} from './panel-part.js';
import {sayBroken} from './broken.js';
import {Uploads} from './upload.js';

// named gives each of some files that come together a name of its own. Those of several folders may be called the same: all but the first
// of them get a number, and no name that another file has.
function named(list, there) {
  const others = new Set([...there, ...list.map(({name}) => name)]), given = new Set();
  return list.map((file) => {
    const [, stem, end] = /^(.+?)(\.[^.]*)?$/s.exec(file.name);
    let {name} = file;
    for (let n = 2; given.has(name) || name !== file.name && others.has(name); n++) name = `${stem} (${n})${end ?? ''}`;
    given.add(name);
    return {file, name};
  });
}

class Files extends Part {
  constructor(id, panel) {
    super(document.getElementById('folder'), () => `/s/${id}/files?path=${encodeURIComponent(this.at)}&most=${this.most}`);
    this.id = id;
    this.at = '.';
    this.most = 0; // how many are listed, if not as many as at first
    this.coming = new Set(); // paths of what is on its way, or there and not listed yet
    this.box = document.getElementById('panel-files');
    this.preview = document.getElementById('preview');
    this.box.addEventListener('click', (event) => this.click(event));
    sayBroken(this.preview);
    this.preview.addEventListener('close', () => {
      this.preview.replaceChildren();
      orElse(this.box); // what it was opened by may have gone
    });
    if ('mayWrite' in this.box.dataset) this.take(panel);
  }

  // show lists the files anew whenever they are turned to: a cell that runs writes files, and only its end is told.
  show() {
    this.old = true;
    super.show();
  }

  // take lets files be brought, by the button and by dropping them.
  take(panel) {
    const uploads = new Uploads(this.id, document.getElementById('uploads'), Math.min(1 << 20, Number(panel.dataset.part)));
    const bring = (list) => attempt(() => this.bring(uploads, [...list]));
    const input = document.getElementById('upload');
    input.addEventListener('change', () => {
      bring(input.files);
      input.value = '';
    });
    const drop = (event, on) => {
      if (!event.dataTransfer?.types.includes('Files')) return;
      event.preventDefault();
      this.box.classList.toggle('dropping', on);
    };
    this.box.addEventListener('dragover', (event) => drop(event, true));
    this.box.addEventListener('dragleave', (event) => { if (!this.box.contains(event.relatedTarget)) drop(event, false); });
    this.box.addEventListener('drop', (event) => {
      drop(event, false);
      const items = [...event.dataTransfer.items], folders = items.map((item) => item.webkitGetAsEntry?.()).filter((entry) => entry?.isDirectory);
      if (folders.length > 0) tell.still(`Folders cannot be uploaded: ${folders.map(({name}) => name).join(', ')}. Drop the files in them, or a zip file.`);
      bring(items.filter((item) => !item.webkitGetAsEntry?.()?.isDirectory).map((item) => item.getAsFile()).filter(Boolean));
    });
  }

  // bring uploads files. Those that would replace others do so when somebody says so: what a cell has written since the files were listed
  // counts, too, and what has been dropped before and is not there yet. While nobody can say what is there, nothing is uploaded.
  async bring(uploads, list) {
    const into = this.at === '.' ? '' : `${this.at}/`;
    const now = fragment(await (await send(this.address())).text()); // the panel may list another folder by then
    const there = new Set([...now.querySelectorAll('li[data-name]')].map((row) => row.dataset.name));
    for (const path of this.coming) if (path.startsWith(into)) there.add(path.slice(into.length));
    const same = list.filter((file) => there.has(file.name)).map((file) => file.name);
    if (same.length > 0 && !await confirm('Replace?', `${same.join(', ')} ${same.length === 1 ? 'is' : 'are'} there already.`, 'Replace')) return;
    const files = named(list, there), renamed = files.filter(({file, name}) => name !== file.name);
    if (renamed.length > 0) tell.still(`Several files had the same name. ${renamed.map(({file, name}) => `Another ${file.name} is ${name} now`).join('. ')}.`);
    const paths = files.map(({name}) => into + name);
    for (const path of paths) this.coming.add(path);
    await Promise.all(files.map(({file, name}) => uploads.send(file, name, into)));
    await this.load();
    for (const path of paths) this.coming.delete(path);
  }

  click(event) {
    const button = event.target.closest('button');
    if (!button) return;
    const {open, preview, delete: gone, kind, most} = button.dataset;
    if (open !== undefined) this.go(open);
    else if (preview !== undefined) attempt(() => this.look(preview));
    else if (most !== undefined) this.more(most);
    else if (gone !== undefined) this.remove(gone, kind === 'folder');
  }

  async go(to) {
    this.at = to;
    this.most = 0;
    await this.load();
    this.into.querySelector('.path button:last-of-type')?.focus();
  }

  // more lists more of the folder, and goes to the first of them.
  async more(most) {
    const before = this.into.querySelectorAll('.files li').length;
    this.most = most;
    await this.load();
    this.into.querySelectorAll('.files li')[before]?.querySelector('button')?.focus();
  }

  async look(path) {
    const shown = await send(`/s/${this.id}/preview?path=${encodeURIComponent(path)}`);
    this.preview.replaceChildren(fragment(await shown.text()));
    this.preview.showModal();
  }

  async remove(path, folder) {
    const what = folder ? 'The folder and all that is in it are' : 'The file is';
    if (!await confirm(`Delete ${path}?`, `${what} gone for good.`, 'Delete')) return;
    await attempt(async () => {
      await post(`/s/${this.id}/delete?path=${encodeURIComponent(path)}`, {recursive: folder});
      tell(`${path} is deleted.`);
    });
    await this.load();
    orElse(this.box);
  }

  excuse(error) {
    if (this.at !== '.' && error.kind === 'not_found') {
      this.at = '.'; // the folder is gone
      this.load();
    }
    return error.message;
  }
}

export const files = (id, panel) => new Files(id, panel);
