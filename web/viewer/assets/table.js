// A table that is wider than the page is looked at sideways: its index, which says what a row is, stays in sight then.

const most = 0.5; // of a table's width in sight that an index may take: one of long texts scrolls away, as on a phone

// keepIndex keeps the index of each table in a place in sight that is scrolled sideways. Where its columns begin, and whether there is
// room for them, is known when that happens.
export function keepIndex(place) {
  place.addEventListener('scroll', ({target: box}) => {
    if (!box.matches?.('.html')) return;
    const aside = box.scrollLeft > 0;
    if (aside) measure(box);
    box.classList.toggle('aside', aside);
  }, {capture: true, passive: true});
}

// measure tells the style sheet where each column of the index stays. A box may hold several tables.
function measure(box) {
  for (const table of box.querySelectorAll('table')) {
    let left = 0;
    for (let n = 0, cell; (cell = table.querySelector(`[data-index="${n}"]`)); n++) {
      const fits = left + cell.offsetWidth <= box.clientWidth * most;
      table.style.setProperty(`--index-${n}`, fits ? `${left}px` : 'auto');
      left += cell.offsetWidth;
    }
  }
}
