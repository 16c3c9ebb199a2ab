// The cells of a kernel that is no more are run again, on the next one.
import {post} from './send.js';
import {confirm} from './dialog.js';
import {attempt, tell} from './toast.js';
import {onDesk} from './desk.js';
import {pass} from './focus.js';

// What was lost is said where the cells end, and can be brought back from there.
onDesk(({state, generation, cells, fresh, back, back_after: after, restoring}) => {
  const gone = ['died', 'culled', 'closed'].includes(state);
  const show = (id, shown) => {
    const part = document.getElementById(id);
    if (!part) return;
    if (!shown || restoring) pass(part, document.getElementById(id === 'restore' ? 'code' : 'tab-details'));
    part.hidden = !shown;
    if (part.tagName !== 'BUTTON') return;
    part.dataset.label ??= part.textContent;
    part.disabled = Boolean(restoring);
    part.textContent = restoring ? `Restoring, ${restoring.done} of ${restoring.of}` : part.dataset.label;
  };
  document.getElementById('fresh-number').textContent = generation;
  const saved = after ? `variables were saved after cell ${after}, and are back` : 'variables were saved, and are back';
  document.getElementById('fresh-variables').textContent = back ? saved : 'variables were lost';
  show('fresh', fresh);
  show('restore', Boolean(restoring) || cells > 0 && (gone || fresh && (!back || after)));
  show('panel-restore', Boolean(restoring) || cells > 0 && (gone || generation > 1));
});

// restoreCells runs the cells of a lost kernel again, if that is wanted.
export async function restoreCells(id) {
  const sure = await confirm('Run the earlier cells again?',
    'The cells that ran successfully on the last lost kernel run again, in their order, on a new one. Those of kernels before it do not, and those that read input() are left out. What they do outside of the kernel they do again.', 'Run them again');
  if (!sure) return;
  await attempt(async () => {
    const {said, complete} = await post(`/s/${id}/restore`);
    (complete ? tell : tell.still)(said);
  });
}
