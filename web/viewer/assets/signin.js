// The page to sign in goes on by itself when somebody has signed in in another tab: the same person to the page that this tab had,
// anybody else to the sessions.
import {leftBy} from './signed-out.js';

async function look() {
  if (document.hidden) return;
  const answer = await fetch('/live/state', {headers: {Accept: 'application/json'}}).catch(() => null);
  if (!answer?.ok) return;
  const {visitor} = await answer.json();
  location.replace(leftBy(visitor) ?? '/');
}

const pages = globalThis.BroadcastChannel ? new BroadcastChannel('cellblock') : null;
let told = false; // that somebody has signed in, while nobody saw this page
pages?.addEventListener('message', () => { told = true; look(); });
document.addEventListener('visibilitychange', () => { if (told || !pages) look(); });
