// A picture that cannot be shown is said to be one, instead of the browser's sign for it. What there is of it can be downloaded.
import {send} from './send.js';
import {onLink} from './live.js';

const unreached = new Set();

async function excuse(image) {
  let why = 'its data is cut off or damaged', there = true;
  try {
    await (await send(image.src)).body?.cancel();
  } catch (error) {
    if (!error.status) { // the server cannot be reached
      unreached.add(image);
      return;
    }
    why = error.message.replace(/\.$/, '');
    why = why[0].toLowerCase() + why.slice(1);
    there = false;
  }
  const said = Object.assign(document.createElement('p'), {className: 'remark', textContent: `This picture cannot be shown: ${why}.`});
  const figure = image.closest('.picture');
  figure?.classList.add('broken');
  if (!there) figure?.querySelector('.save').remove();
  (image.closest('.enlarge') ?? image).replaceWith(said);
}

onLink((up) => {
  if (!up) return;
  for (const image of unreached) image.src = image.src; // which loads it again
  unreached.clear();
});

// sayBroken watches over the pictures within a node, now and as they come.
export function sayBroken(node) {
  const of = (image) => image.matches('.picture img, #preview .shown > img');
  node.addEventListener('error', ({target}) => { if (of(target)) excuse(target); }, true);
  for (const image of node.querySelectorAll('img')) {
    if (of(image) && image.complete) image.decode().catch(() => excuse(image)); // it was there before this script
  }
}
