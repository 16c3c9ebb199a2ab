// The server page, live. Where its reader is, in a table that scrolls, he stays.
import {subscribe} from './live.js';
import {fragment} from './fragment.js';

const server = document.getElementById('server');
const scrolls = () => [...server.querySelectorAll('.scrolls')];
subscribe('server', '', (event, html) => {
  if (event !== 'state' || getSelection()?.type === 'Range') return;
  const at = scrolls().map((box) => box.scrollTop), focus = scrolls().indexOf(document.activeElement);
  server.replaceChildren(fragment(html));
  scrolls().forEach((box, i) => { box.scrollTop = at[i] ?? 0; });
  scrolls()[focus]?.focus();
});
