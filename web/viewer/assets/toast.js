// tell says something for a while, in a corner, tell.still until it is read. tell.problem says what went wrong, and what to do, until
// it is read; that the server cannot be reached, until it can be.
import {onLink} from './live.js';
import {pass} from './focus.js';

const corner = document.createElement('div');
corner.className = 'toasts';
corner.setAttribute('role', 'status');
(document.getElementById('editor') ?? document.body).prepend(corner); // it covers nothing that somebody writes

function put(text, kind, lasts) {
  const toast = Object.assign(document.createElement('div'), {className: `toast ${kind}`});
  const close = Object.assign(document.createElement('button'), {textContent: '×', className: 'quiet'});
  close.setAttribute('aria-label', 'Dismiss');
  const remove = () => {
    pass(toast, document.querySelector('#code:enabled') ?? document.getElementById('main'));
    toast.remove();
  };
  close.onclick = remove;
  toast.append(Object.assign(document.createElement('span'), {textContent: text}), close);
  for (const old of [...corner.children]) if (old.firstChild.textContent === text) old.remove();
  corner.append(toast);
  while (corner.children.length > 4) corner.firstChild.remove();
  if (lasts) setTimeout(remove, lasts);
}

export const tell = (text) => put(text, 'news', 6000);
tell.still = (text) => put(text, 'news', 0);
tell.problem = (error) => put(problem(error), error.status === 0 ? 'problem unreached' : 'problem', 0);

onLink((up) => {
  if (up) for (const toast of corner.querySelectorAll('.unreached')) toast.remove();
});

// problem is what people are told of an error: sentences.
export const problem = ({message, hint}) => (hint ? `${message} ${hint}` : message);

// attempt runs something and tells what went wrong with it.
export async function attempt(work) {
  try {
    return await work();
  } catch (error) {
    tell.problem(error);
  }
}
