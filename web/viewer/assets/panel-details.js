// What the session is made of.
import {Part} from './panel-part.js';

export const details = (id) => new Part(document.getElementById('details'), () => `/s/${id}/details`);
