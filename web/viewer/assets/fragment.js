// fragment turns HTML that the server has made into nodes. It is the only way for HTML to get into a page: the policy that the
// pages have refuses strings elsewhere. What comes from kernels has been made safe by the server before.
const policy = globalThis.trustedTypes?.createPolicy('cellblock', {createHTML: (html) => html}) ?? {createHTML: (html) => html};

export function fragment(html) {
  const template = document.createElement('template');
  template.innerHTML = policy.createHTML(html);
  return document.importNode(template.content, true);
}

// element is the one element that some HTML is.
export const element = (html) => fragment(html).firstElementChild;
