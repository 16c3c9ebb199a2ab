// tell says something for a while, in a corner. tell.problem says what went wrong, and what to do, until it is read.
const corner = document.createElement('div');
corner.className = 'toasts';
corner.setAttribute('role', 'status');
document.body.append(corner);

function put(text, kind, lasts) {
  const toast = Object.assign(document.createElement('div'), {className: `toast ${kind}`});
  const close = Object.assign(document.createElement('button'), {textContent: '×', className: 'quiet'});
  close.setAttribute('aria-label', 'Dismiss');
  close.onclick = () => toast.remove();
  toast.append(Object.assign(document.createElement('span'), {textContent: text}), close);
  corner.append(toast);
  while (corner.children.length > 4) corner.firstChild.remove();
  if (lasts) setTimeout(() => toast.remove(), lasts);
}

export const tell = (text) => put(text, 'news', 6000);
tell.problem = (error) => put(problem(error), 'problem', 0);

// problem is what people are told of an error.
export const problem = ({message, hint}) => (hint ? `${message}. ${hint}` : message);

// attempt runs something and tells what went wrong with it.
export async function attempt(work) {
  try {
    return await work();
  } catch (error) {
    tell.problem(error);
  }
}
