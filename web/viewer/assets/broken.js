// A picture that cannot be shown is said to be one, instead of the browser's sign for it. What there is of it can be downloaded. One
// that only could not be had now is asked for again.
import {send} from './send.js';
import {onLink} from './live.js';
import {onSignedIn} from './signed-out.js';

const shortest = 2000, longest = 60_000; // ms until the next try
const waiting = new Set(), doubted = new WeakSet();
let pause = shortest, timer = 0;

async function excuse(image) {
  let why = 'its data is cut off or damaged', there = true;
  try {
    await (await send(image.src)).body?.cancel();
    if (!doubted.has(image)) { // it may have been the request that failed, not the picture
      doubted.add(image);
      load(image);
      return;
    }
  } catch (error) {
    if (passes(error.status)) {
      later(image, error.status);
      return;
    }
    why = error.message.replace(/\.$/, '');
    why = why[0].toLowerCase() + why.slice(1);
    there = false;
  }
  const said = Object.assign(document.createElement('p'), {className: 'remark', textContent: `This picture cannot be shown: ${why}.`});
  const figure = image.closest('.picture');
  figure?.classList.add('broken');
  if (!there) figure?.querySelector('.save')?.remove();
  (image.closest('.enlarge') ?? image).replaceWith(said);
}

const load = (image) => { image.src = image.src; }; // which asks for it anew

// passes tells whether a status says nothing about the picture: the server cannot be reached, is busy or starts, or nobody is signed in.
const passes = (status) => [0, 401, 408, 429].includes(status) || status >= 500;

// later asks for a picture when there is a connection or a sign-in again; where there are both, in a while.
function later(image, status) {
  waiting.add(image);
  if (status === 0 || status === 401 || timer) return;
  timer = setTimeout(() => { timer = 0; loadAll(); }, pause);
  pause = Math.min(longest, 2 * pause);
}

function loadAll() {
  const all = [...waiting];
  waiting.clear();
  for (const image of all) if (image.isConnected) load(image);
}

function anew() {
  pause = shortest;
  loadAll();
}

onLink((up) => { if (up) anew(); });
onSignedIn(anew);

// sayBroken watches over the pictures within a node, now and as they come.
export function sayBroken(node) {
  const of = (image) => image.matches('.picture img, #preview .shown > img');
  node.addEventListener('error', ({target}) => { if (of(target)) excuse(target); }, true);
  for (const image of node.querySelectorAll('img')) {
    if (of(image) && image.complete) image.decode().catch(() => excuse(image)); // it was there before this script
  }
}
