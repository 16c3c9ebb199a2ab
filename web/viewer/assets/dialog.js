import {orElse} from './focus.js';
import {problem, tell} from './toast.js';

// The first button is the one that Enter presses; the style sheet puts it last. Dialogs: show explains something, confirm asks before something is lost and resolves to whether to go on.
function dialog(title, content, buttons) {
  const box = document.createElement('dialog');
  const heading = Object.assign(document.createElement('h2'), {textContent: title, id: `dialog-${Date.now()}`});
  box.setAttribute('aria-labelledby', heading.id);
  const form = Object.assign(document.createElement('form'), {method: 'dialog'});
  const row = Object.assign(document.createElement('div'), {className: 'buttons'});
  row.append(...buttons.map(([text, value, kind]) => Object.assign(document.createElement('button'), {textContent: text, value, className: kind, formNoValidate: value === ''})));
  form.append(heading, content, row);
  box.append(form);
  document.body.append(box);
  box.showModal();
  return new Promise((resolve) => {
    box.addEventListener('close', () => {
      box.remove();
      orElse(document.getElementById('main')); // what had it before may have gone
      resolve({value: box.returnValue, form});
    });
  });
}

const paragraph = (text) => Object.assign(document.createElement('p'), {textContent: text});

export const show = (title, content) => dialog(title, typeof content === 'string' ? paragraph(content) : content, [['Close', '', 'primary']]);

export async function confirm(title, text, action) {
  const {value} = await dialog(title, paragraph(text), [[action, 'yes', 'danger'], ['Cancel', '', 'quiet']]);
  return value === 'yes';
}

// ask shows a form's content and runs work with its FormData, and resolves to whether that was done. Where it fails the form stays as
// it was filled in, and says why. Who closes the form meanwhile wants nothing more of it, but is told of a failure still.
export async function ask(title, content, action, work) {
  const wrong = Object.assign(paragraph(''), {className: 'problem'});
  wrong.setAttribute('role', 'alert');
  content.append(wrong);
  const asked = dialog(title, content, [[action, 'yes', 'primary'], ['Cancel', '', 'quiet']]);
  const form = wrong.closest('form'), box = form.closest('dialog'), button = form.querySelector('button.primary');
  form.addEventListener('submit', async (event) => {
    if (event.submitter !== button) return;
    event.preventDefault();
    button.disabled = true;
    wrong.textContent = '';
    try {
      await work(new FormData(form));
      box.close('yes');
    } catch (error) {
      if (!box.open) tell.problem(error);
      else wrong.textContent = problem(error);
    }
    button.disabled = false;
  });
  return (await asked).value === 'yes';
}
