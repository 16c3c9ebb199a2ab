// interrupt stops a cell, unless that would cost its session all variables, and tells of one that does not stop.
import {post} from './send.js';
import {attempt, tell} from './toast.js';

const quick = 1000; // milliseconds, within which most cells stop

export const interrupt = (id, cell) => attempt(async () => {
  const slow = setTimeout(() => tell(`Cell ${cell} of ${id} is being interrupted.`), quick);
  try {
    const {runs_on: runsOn} = await post(`/s/${id}/interrupt`, {cell});
    if (runsOn) tell.still(`Cell ${cell} of ${id} does not stop: what it does cannot be interrupted, and it runs on. Restart stops it, and its variables are lost.`);
  } finally {
    clearTimeout(slow);
  }
});
