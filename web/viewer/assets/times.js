// Times as people read them: in their own zone and language, and going on while they look. A time says with data-show how:
// "time" (when), "ago" (how long ago), "left" (how long until then), "elapsed" (a clock that runs).
const when = new Intl.DateTimeFormat('en', {dateStyle: 'medium', timeStyle: 'short'});
const clock = new Intl.DateTimeFormat('en', {timeStyle: 'short'});

// span is how far away something is, in the words of the server: "12 s", "5 min", "3 h", "4 days".
export function span(seconds) {
  const s = Math.max(0, seconds);
  if (s < 60) return `${Math.floor(s)} s`;
  if (s < 7200) return `${Math.floor(s / 60)} min`;
  if (s < 172800) return `${Math.floor(s / 3600)} h`;
  return `${Math.floor(s / 86400)} days`;
}

// running is a clock: "0:07", "12:31", "1:02:03".
export function running(seconds) {
  const s = Math.max(0, Math.floor(seconds));
  const two = (n) => String(n).padStart(2, '0');
  const h = Math.floor(s / 3600), m = Math.floor(s / 60) % 60;
  return h > 0 ? `${h}:${two(m)}:${two(s % 60)}` : `${m}:${two(s % 60)}`;
}

const today = (date) => date.toDateString() === new Date().toDateString();

function text(show, date) {
  const seconds = (Date.now() - date) / 1000;
  switch (show) {
    case 'ago': return seconds < 5 ? 'now' : `${span(seconds)} ago`;
    case 'left': return `in ${span(-seconds)}`;
    case 'elapsed': return running(seconds);
    default: return today(date) ? clock.format(date) : when.format(date);
  }
}

let held = false;

// hold stops the clocks while nobody knows whether what they measure goes on, and lets them go again.
export function hold(on) {
  held = on;
  if (!on) write(document);
}

// write writes the times below a node.
export function write(root) {
  for (const time of root.querySelectorAll('time[data-show]')) {
    if (held && time.dataset.show === 'elapsed' && time.textContent) continue;
    const date = new Date(time.dateTime);
    if (Number.isNaN(date.valueOf()) || date.getFullYear() < 1971) continue;
    const said = text(time.dataset.show, date);
    if (time.textContent !== said) time.textContent = said;
    if (!time.title) time.title = when.format(date);
  }
}

let timer = 0;
function tick() {
  write(document);
  clearTimeout(timer);
  if (!document.hidden) timer = setTimeout(tick, 1000 - (Date.now() % 1000));
}
document.addEventListener('visibilitychange', tick);
new MutationObserver((changes) => {
  const roots = new Set(); // many nodes may have been added to one
  for (const {addedNodes, target} of changes) {
    if ([...addedNodes].some((node) => node.nodeType === Node.ELEMENT_NODE)) roots.add(target);
  }
  for (const root of roots) write(root);
}).observe(document.body, {childList: true, subtree: true});
tick();
