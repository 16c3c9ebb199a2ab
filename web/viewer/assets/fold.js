// A long text is folded: its first and its last lines stand for it. Unfolded it has a box of its own, with whatever was in the window
// where it was.
import {setItem} from './copy.js';
import {get} from './send.js';
import {attempt} from './toast.js';

// unfold brings all of a text, also where that was there already and has grown; refold only its ends again. base is the address of
// the session's cells.
export const unfold = (item, base) => bring(item, base, '');

export async function refold(item, base) {
  await bring(item, base, '?folded');
  item.querySelector('.unfold')?.scrollIntoView({block: 'nearest'});
}

async function bring(item, base, how) {
  const {n} = item.closest('.cell').dataset;
  const {html} = await attempt(() => get(`${base}/${n}/items/${item.dataset.key}${how}`)) ?? {};
  if (html === undefined) return;
  const top = item.getBoundingClientRect().top, held = item.contains(document.activeElement), read = item.querySelector('.unfolded')?.scrollTop ?? 0;
  if (how) delete item.dataset.whole;
  else item.dataset.whole = '';
  setItem(item, html);
  const box = item.querySelector('.unfolded');
  if (box) box.scrollTop = read;
  if (held) (box ?? item.querySelector('.unfold'))?.focus({preventScroll: true});
  scrollBy(0, item.getBoundingClientRect().top - top);
}
