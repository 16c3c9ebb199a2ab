// The cells of a kernel that is no more are run again, on the next one.
import {post} from './send.js';
import {confirm} from './dialog.js';
import {attempt, tell} from './toast.js';

// restoreCells runs the cells of a lost kernel again, if that is wanted.
export async function restoreCells(id, button) {
  const sure = await confirm('Run the earlier cells again?',
    'The cells that ran successfully on the lost kernel run again, in their order, on a new one. What they do outside of the kernel they do again.', 'Run them again');
  if (!sure) return;
  button.disabled = true;
  await attempt(async () => {
    const done = await post(`/s/${id}/restore`);
    const rest = done.stopped ? ` It stopped: ${done.stopped}.` : '';
    tell(`${done.ran} ${done.ran === 1 ? 'cell' : 'cells'} ran again.${rest}`);
  });
  button.disabled = false;
}
