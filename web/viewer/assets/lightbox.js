// A picture, larger: twice as large as it stands in its cell, or as it was made, as far as the window has room.
export function enlarge(image) {
  const box = Object.assign(document.createElement('dialog'), {className: 'lightbox', ariaLabel: 'Picture'});
  const close = Object.assign(document.createElement('button'), {type: 'button', textContent: 'Close'});
  close.onclick = () => box.close();
  box.onclick = ({target}) => { if (target !== close) box.close(); };
  box.onclose = () => box.remove();
  const grown = Object.assign(new Image(), {src: image.src, alt: image.alt});
  const {naturalWidth, naturalHeight, clientWidth, clientHeight} = image;
  const shape = naturalWidth && naturalHeight ? naturalWidth / naturalHeight : clientWidth / clientHeight;
  grown.style.width = `min(${Math.max(naturalWidth, 2 * clientWidth)}px, 96vw - 1.75rem, (96vh - 5.5rem) * ${shape})`;
  box.append(grown, close);
  document.body.append(box);
  box.showModal();
}
