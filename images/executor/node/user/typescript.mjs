// Files of TypeScript in the workspace can be imported and required: Node 20 knows none. Types are taken out as those of cells.
import { readFileSync } from 'node:fs'
import module, { createRequire } from 'node:module'
import { strip } from '../shared.mjs'
import { SyntaxError, process } from './intrinsics.mjs'

const ours = createRequire(import.meta.url)
const everywhere = process.argv.includes('typescript') // --language
let ready = false

// namesFile tells what is the place of a file, and no module's name.
export const namesFile = specifier => /^(\.{0,2}\/|file:)/.test(specifier)

// followTypeScript has what is imported from now on be looked through for TypeScript; that takes a thread of Node's own, and so begins
// with the first file that a cell names: in the kernel for TypeScript any, as it may stand without its ending.
export function followTypeScript(specifier) {
  if (ready || !namesFile(specifier) || !everywhere && !/\.[cm]?ts$/.test(specifier)) return
  ready = true
  module.register('./typescript-hooks.mjs', import.meta.url)
}

// requireTypeScript lets require() read files of TypeScript that are CommonJS modules.
export function requireTypeScript() {
  for (const ending of ['.ts', '.cts']) {
    ours.extensions[ending] = (module, file) => module._compile(stripped(readFileSync(file, 'utf8'), file), file)
  }
}

// stripped is TypeScript without its types, and its lines where they were; enums and what else is code become code.
export function stripped(source, file) {
  try {
    return strip(ours('amaro').transformSync, source).code
  } catch (error) {
    throw new SyntaxError(`${error.message} (${file}${error.startLine ? `, line ${error.startLine}` : ''})`)
  }
}
