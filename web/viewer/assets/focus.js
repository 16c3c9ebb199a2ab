// The focus stays where a person was, also where what had it is replaced, hidden or taken away.

// pass gives the focus to something else when it is within what is about to go, or cannot have it any more.
export function pass(node, to) {
  if (node?.contains(document.activeElement)) to?.focus({preventScroll: true});
}

// keep runs what replaces nodes within a place, which it returns if that is another now, and gives the focus to what stands there for
// what had it: what is called the same, or has its place; failing that, to another.
export function keep(place, change, other) {
  const at = document.activeElement;
  const held = place?.contains(at);
  const before = held ? list(place) : [];
  const now = change() ?? place;
  if (!held || at.isConnected) return;
  if (at === place) {
    now.focus({preventScroll: true});
    return;
  }
  const after = list(now);
  const same = after.find((one) => called(one) === called(at)) ?? (other ? null : after[Math.min(before.indexOf(at), after.length - 1)]);
  (same ?? other?.() ?? now).focus({preventScroll: true});
}

const list = (place) => [...place.querySelectorAll('a[href], button, summary, input, [tabindex="0"]')];
const called = (node) => `${node.localName} ${node.getAttribute('aria-label') ?? node.textContent.trim()}`;

// orElse gives the focus to something when nothing has it.
export function orElse(to) {
  if (document.activeElement === document.body) to?.focus({preventScroll: true});
}
