// Node's own modules as globals, as in its own console: fs, path, os… Each is loaded when it is first used. They are no variables: what a
// cell gives the name to takes its place.
import { builtinModules, createRequire } from 'node:module'
import { Object, Set } from './intrinsics.mjs'

const require = createRequire(import.meta.url)
const ours = new Set() // the getters

// What warns when it is loaded, and nobody means by these names.
const LEFT_OUT = new Set(['sys', 'punycode', 'constants', 'domain'])

// installBuiltIns leaves globals alone, except crypto: what browsers call so is a part of Node's.
export function installBuiltIns() {
  for (const name of builtinModules) {
    if (/^_|[/:]/.test(name) || LEFT_OUT.has(name) || name in globalThis && name !== 'crypto') continue
    const get = () => require(name)
    ours.add(get)
    const set = value => {
      delete globalThis[name]
      globalThis[name] = value
    }
    Object.defineProperty(globalThis, name, { get, set, enumerable: false, configurable: true })
  }
}

// isBuiltIn tells whether a property of the global object is still such a module.
export function isBuiltIn(property) {
  return property?.get !== undefined && ours.has(property.get)
}
