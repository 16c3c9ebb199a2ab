// What an editor of code does with the text of a textarea. All changes can be undone as typed ones can.

// insert puts text in the place of what is between two positions, or of what is selected.
export function insert(area, text, from = area.selectionStart, to = area.selectionEnd) {
  area.focus();
  area.setSelectionRange(from, to);
  if (text === '' && from === to) return;
  if (document.execCommand(text === '' ? 'delete' : 'insertText', false, text)) return;
  area.setRangeText(text, from, to, 'end'); // a browser that has given execCommand up
  area.dispatchEvent(new InputEvent('input', {bubbles: true}));
}

// putBack puts text into an area that is empty, and leaves the focus where somebody is meanwhile.
export function putBack(area, text) {
  const at = document.activeElement;
  if (at === area || at === document.body) {
    insert(area, text);
    return;
  }
  area.setRangeText(text, 0, 0, 'end');
  area.dispatchEvent(new InputEvent('input', {bubbles: true}));
}

export const lineStart = (area, at = area.selectionStart) => area.value.lastIndexOf('\n', at - 1) + 1;

// beforeCursor is what stands before the cursor on its line.
export const beforeCursor = (area) => area.value.slice(lineStart(area), area.selectionStart);

export const onFirstLine = (area) => lineStart(area) === 0;
export const onLastLine = (area) => !area.value.slice(area.selectionEnd).includes('\n');

// points counts Unicode code points, as kernels do; offset is the way back.
export const points = (text) => [...text].length;
export const offset = (text, count) => [...text].slice(0, count).join('').length;

const leading = (line) => /^[ \t]*/.exec(line)[0];

// newline goes to the next line, as deep as this one, and deeper behind what opens something.
export function newline(area, indent) {
  const line = beforeCursor(area);
  let depth = leading(line);
  if (/[:([{]\s*(#.*|\/\/.*)?$/.test(line)) depth += indent;
  insert(area, '\n' + depth);
}

// backspace takes a whole level away in front of a line, and tells whether it did.
export function backspace(area, indent) {
  const line = beforeCursor(area);
  if (area.selectionStart !== area.selectionEnd || line === '' || line.trim() !== '' || !line.endsWith(' ')) return false;
  const width = (line.length - 1) % indent.length + 1;
  if (!line.endsWith(' '.repeat(width))) return false;
  insert(area, '', area.selectionStart - width, area.selectionStart);
  return true;
}

// eachLine changes the lines that are selected, and leaves them selected.
function eachLine(area, change) {
  const from = lineStart(area);
  let to = area.selectionEnd;
  if (to > area.selectionStart && area.value[to - 1] === '\n') to--; // nothing of the next line is selected
  const end = area.value.indexOf('\n', to);
  to = end < 0 ? area.value.length : end;
  const changed = change(area.value.slice(from, to).split('\n')).join('\n');
  insert(area, changed, from, to);
  area.setSelectionRange(from, from + changed.length);
}

export const deeper = (area, indent) => eachLine(area, (lines) => lines.map((line) => (line.trim() ? indent + line : line)));
export const shallower = (area, indent) => eachLine(area, (lines) => lines.map((line) =>
  line.slice(Math.min(indent.length, leading(line).length))));

// comment makes comments of the lines that are selected, or code again.
export function comment(area, mark) {
  eachLine(area, (lines) => {
    const code = lines.filter((line) => line.trim());
    const all = code.every((line) => line.trimStart().startsWith(mark));
    return lines.map((line) => {
      if (!line.trim()) return line;
      const depth = leading(line);
      const rest = line.slice(depth.length);
      if (!all) return `${depth}${mark} ${rest}`;
      return depth + rest.slice(mark.length).replace(/^ /, '');
    });
  });
}

// grow gives a textarea as many rows as its text has.
export function grow(area) {
  area.rows = Math.min(40, area.value.split('\n').length);
}

// caret is where a position of a textarea is in it, in pixels: its left, and its line's top and bottom.
export function caret(area, at) {
  const style = getComputedStyle(area);
  const line = parseFloat(style.lineHeight);
  const pen = document.createElement('canvas').getContext('2d');
  pen.font = `${style.fontSize} ${style.fontFamily}`;
  const before = area.value.slice(0, at);
  const row = before.split('\n').length - 1;
  const text = before.slice(before.lastIndexOf('\n') + 1).replaceAll('\t', '    ');
  const top = parseFloat(style.paddingTop) + row * line - area.scrollTop;
  return {left: parseFloat(style.paddingLeft) + pen.measureText(text).width - area.scrollLeft, top, bottom: top + line};
}
