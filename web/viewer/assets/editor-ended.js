// How a person's own cells end is told to who does not see it. Of a model's there may be too many.
const said = document.getElementById('ended-said');
const mine = new Set(); // numbers of cells whose end was not told

// expect has the end of a cell told, which may have come already.
export function expect(n) {
  mine.add(n);
  look(n);
}

function look(n) {
  const head = document.querySelector(`#c${n} .cell-head`);
  if (!mine.has(n) || !head || head.matches('.queued, .running')) return;
  mine.delete(n);
  const why = head.querySelector('.failure')?.textContent.trim();
  said.textContent = `Cell ${n}: ${head.querySelector('.cell-status').textContent}${why ? `. ${why}` : ''}`;
}

document.addEventListener('cell-changed', ({detail}) => look(detail));
