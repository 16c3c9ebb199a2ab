// fragment turns HTML that the server has made into nodes. It is the only way for HTML to get into a page: the policy that the
// pages have refuses strings elsewhere. What comes from kernels has been made safe by the server before.
const rules = {
  createHTML: (html) => html,
  createScriptURL(url) {
    if (new URL(url).origin !== location.origin || !url.includes('/assets/')) throw new TypeError(`no script of ours: ${url}`);
    return url;
  },
};
const policy = globalThis.trustedTypes?.createPolicy('cellblock', rules) ?? rules;

// script is the address of a module beside this one, for a worker.
export const script = (name) => policy.createScriptURL(new URL(name, import.meta.url).href);

export function fragment(html) {
  const template = document.createElement('template');
  template.innerHTML = policy.createHTML(html);
  return document.importNode(template.content, true);
}

// element is the one element that some HTML is.
export const element = (html) => fragment(html).firstElementChild;
