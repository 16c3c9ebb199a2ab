// Node's hooks for imports (module.register), which run in a thread of their own.
import { readFile } from 'node:fs/promises'
import { fileURLToPath } from 'node:url'
import { namesFile, stripped } from './typescript.mjs'

// resolve finds what TypeScript would: "./util" and "./util.js" may be util.ts.
export async function resolve(specifier, context, next) {
  try {
    return await next(specifier, context)
  } catch (error) {
    if (!/^ERR_(MODULE_NOT_FOUND|UNSUPPORTED_DIR_IMPORT)$/.test(error.code) || !namesFile(specifier)) throw error
    const other = /\.[cm]?js$/.test(specifier) ? specifier.replace(/js$/, 'ts') : `${specifier}.ts`
    return await next(other, context).catch(() => { throw error })
  }
}

export async function load(url, context, next) {
  const [, ending] = /^file:.*\.([cm]?)ts$/.exec(url.replace(/[?#].*/, '')) ?? []
  if (ending === undefined) return next(url, context)
  const file = fileURLToPath(url)
  return { format: ending === 'c' ? 'commonjs' : 'module', source: stripped(await readFile(file, 'utf8'), file), shortCircuit: true }
}
