import {csrf, signedOut} from './signed-out.js';

// post sends something to the server and returns what it answers. It throws a Problem where the server refuses.
export class Problem extends Error {
  constructor(status, body) {
    super(body.message ?? `The server answered with status ${status}.`);
    this.status = status;
    this.kind = body.kind ?? '';
    this.hint = body.hint ?? '';
  }
}


// send makes a request of any kind; options are fetch's.
export async function send(path, options = {}) {
  const headers = new Headers(options.headers);
  headers.set('Accept', 'application/json');
  if (options.method && options.method !== 'GET') headers.set('X-CSRF-Token', csrf());
  let response;
  try {
    response = await fetch(path, {...options, headers, credentials: 'same-origin'});
  } catch {
    throw new Problem(0, {message: 'The server cannot be reached.', hint: 'It may be starting again; try once more in a moment.'});
  }
  if (response.status === 401) signedOut();
  if (!response.ok) throw new Problem(response.status, await response.json().catch(() => ({})));
  return response;
}

export async function post(path, body) {
  const options = {method: 'POST'};
  if (body !== undefined) {
    options.body = JSON.stringify(body);
    options.headers = {'Content-Type': 'application/json'};
  }
  return (await send(path, options)).json();
}

export const get = async (path) => (await send(path)).json();
