// When a sign-in is over by its time, its pages stay as they are, with what is written there, until their person has signed in again in
// another tab. Who has signed out is led to the page to sign in.
const meta = document.querySelector('meta[name=csrf]');
const hearers = new Set();
const pages = globalThis.BroadcastChannel ? new BroadcastChannel('cellblock') : null;
let ended = false; // the sign-in; the box that says so may be closed before there is another
let box = null;

// csrf is the token of the sign-in.
export const csrf = () => meta?.content ?? '';

// onSignedIn calls heard() when the page has got a new sign-in.
export const onSignedIn = (heard) => hearers.add(heard);

// over tells whether it is about the time that the sign-in ends by itself.
function over() {
  const left = Number(meta.dataset.left) * 1000;
  return Date.now() >= performance.timeOrigin + left - Math.min(60_000, left / 10);
}

const left = 'left-signed-out'; // by this tab

// leave goes to the page to sign in, and has the tab remember whose page it had, and where.
function leave() {
  try {
    sessionStorage.setItem(left, JSON.stringify({visitor: meta.dataset.visitor, at: location.pathname + location.hash}));
  } catch { /* then it begins with the sessions */ }
  location.assign(`/signin?to=${encodeURIComponent(location.pathname)}`);
}

// leftBy is the page that a visitor had in this tab when he was signed out, if that was his.
export function leftBy(visitor) {
  try {
    const before = JSON.parse(sessionStorage.getItem(left));
    return before?.visitor === visitor ? before.at : null;
  } catch {
    return null;
  }
}

// signedOut is to be called by whoever finds that nobody is signed in.
export function signedOut() {
  if (!over()) {
    leave();
    return;
  }
  ended = true;
  if (box) return;
  box = Object.assign(document.createElement('dialog'), {className: 'signed-out', onclose: () => { box?.remove(); box = null; }});
  const title = Object.assign(document.createElement('h2'), {textContent: 'Your sign-in has ended', id: 'signed-out'});
  const text = Object.assign(document.createElement('p'), {textContent: 'What you have written is still here. Sign in again in another tab, and go on.'});
  const link = Object.assign(document.createElement('a'), {className: 'button primary', href: '/signin', target: '_blank', textContent: 'Sign in'});
  const row = Object.assign(document.createElement('div'), {className: 'buttons'});
  row.append(link);
  box.setAttribute('aria-labelledby', title.id);
  box.append(title, text, row);
  document.body.append(box);
  box.showModal();
}

// look finds out whether somebody is signed in again: the same, or this is not his page.
async function look() {
  if (!ended) return;
  const answer = await fetch('/live/state', {headers: {Accept: 'application/json'}}).catch(() => null);
  if (!answer?.ok || !ended) return;
  const now = await answer.json();
  if (now.visitor !== meta.dataset.visitor) {
    location.reload();
    return;
  }
  meta.content = now.csrf;
  meta.dataset.left = (Date.now() - performance.timeOrigin) / 1000 + now.left;
  ended = false;
  box?.close();
  for (const heard of hearers) heard();
}

if (meta) {
  pages?.addEventListener('message', look);
  pages?.postMessage('signed in');
  document.addEventListener('visibilitychange', look);
  addEventListener('focus', look);
}
