// The form of a new session. Which images there are to choose from depends on the language, and is known when it has been asked.
import {ask} from './dialog.js';
import {get, post} from './send.js';
import {problem} from './toast.js';

const other = '\n'; // no image is called so

// choose offers the images of the language that is chosen. One that is not listed can be named, where the server allows it.
function choose(content) {
  const language = content.querySelector('[name=language]'), list = content.querySelector('[data-images]'), name = content.querySelector('[name=image]');
  if (!list) return; // he may not see them
  const own = list.options[0];
  let choices = {};
  const offer = () => {
    const images = choices[language.value];
    list.parentElement.hidden = !images;
    list.replaceChildren(own, ...(images ?? []).map((image) => new Option(`${image.name} (${image.about})`, image.name)), new Option('Another…', other));
    list.value = '';
    take();
  };
  const take = () => {
    name.parentElement.hidden = list.value !== other;
    name.required = list.value === other;
    name.value = list.value.trim();
  };
  language.addEventListener('change', offer);
  list.addEventListener('change', () => {
    take();
    if (name.required) name.focus();
  });
  const wrong = Object.assign(document.createElement('p'), {className: 'problem', hidden: true});
  wrong.setAttribute('role', 'status');
  name.parentElement.after(wrong);
  const look = async () => {
    try {
      choices = await get('/images');
    } catch (error) { // one can be named still
      const again = Object.assign(document.createElement('button'), {type: 'button', textContent: 'Try again', onclick: look});
      wrong.replaceChildren(`Which images there are is not known. ${problem(error)} `, again);
      wrong.hidden = name.parentElement.hidden = false;
      name.placeholder = own.text;
      return;
    }
    const named = name.value;
    name.placeholder = '';
    offer();
    if (named && choices[language.value]) {
      list.value = other;
      take();
      name.value = named;
    }
    if (wrong.contains(document.activeElement)) list.focus(); // the button goes
    wrong.hidden = true;
  };
  look();
}

// beginSession asks what session is to be made, and makes it; it resolves to its id, or to nothing if none is wanted.
export async function beginSession(template) {
  let id;
  const content = document.importNode(template.content, true);
  choose(content);
  const begun = await ask('New session', content, 'Start', async (data) => {
    ({session_id: id} = await post('/sessions', Object.fromEntries(data)));
  });
  return begun ? id : undefined;
}
