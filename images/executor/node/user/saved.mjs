// Saves what cells have defined when the kernel is to be stopped, and loads it in the next one. No getter and no proxy is asked.
//
// All data is one text of V8's, so that what two variables share they share again. Modules are loaded again by their names, and functions are
// made again by their source. What would come back as something else is left out, and named.
import { closeSync, openSync, readFileSync, renameSync, rmSync, unlinkSync, writeFileSync } from 'node:fs'
import { builtinModules, createRequire } from 'node:module'
import { join } from 'node:path'
import { isProxy } from 'node:util/types'
import v8 from 'node:v8'
import { Data, isCompound } from './data.mjs'
import { typeName } from './describe.mjs'
import { Functions, script } from './functions.mjs'
import { Buffer, Map, Math, Object, Set, String, process } from './intrinsics.mjs'
import { defined, lookUp } from './names.mjs'

const PLACE = join(process.cwd(), '.cellblock-variables') // the next kernel starts there, too
const MOST_TOLD = 20 // names of what is not saved, or not back
const LONGEST = 60 // characters of a name, and of a type

const require = createRequire(import.meta.url)
const environment = { ...process.env }

// PROTOTYPES are those of the language and of Node, with the names that they had before the first cell.
const PROTOTYPES = Object.entries(Object.getOwnPropertyDescriptors(globalThis))
  .filter(([, { value }]) => typeof value === 'function' && isCompound(value.prototype))
  .map(([name, { value }]) => ({ name: `${name}.prototype`, prototype: value.prototype, before: new Set(Object.getOwnPropertyNames(value.prototype)) }))

// save saves what it can, and returns {saved}.
export function save(modules) {
  let { entries, left } = sorted(modules)
  let text = attempt(() => written(entries, left))
  if (!text) { // something is detached, or too deep
    entries = entries.filter(entry => attempt(() => v8.serialize(entry)) || void left.push(label(entry.name, lookUp(entry.name).value)))
    text = written(entries, left)
  }
  if (entries.length === 0) return { saved: 0 }
  const fresh = `${PLACE}.new`
  try {
    writeFileSync(fresh, text)
    renameSync(fresh, PLACE)
  } finally {
    rmSync(fresh, { force: true })
  }
  return { saved: entries.length }
}

function written(entries, left) {
  const env = Object.fromEntries(Object.entries(process.env).filter(([name, value]) => environment[name] !== value))
  return v8.serialize({ folder: process.cwd(), env, entries, left, added: extensions() })
}

// attempt returns what f does, or undefined if it throws.
function attempt(f) {
  try {
    return f()
  } catch {}
}

// sorted makes of each variable an entry by which it comes back, or the label of one that does not.
function sorted(modules) {
  const entries = [], left = [], data = new Data(), parts = partsOfModules(modules), functions = new Functions()
  for (const name of defined()) {
    const found = lookUp(name)
    if (!found) {
      left.push(`${name} (accessor)`)
      continue
    }
    const { value } = found
    const module = parts.get(value)
    const from = typeof value !== 'function' ? data.entry(value) : module ? { module } : functions.entry(name, value)
    if (from.why === undefined) entries.push({ name, ...from })
    else if (module) entries.push({ name, module })
    else left.push(label(name, value, from.why))
  }
  functions.close()
  return { entries, left }
}

// extensions are what cells, or modules that they have loaded, have added to prototypes: labels, by names.
function extensions() {
  return new Map(PROTOTYPES.flatMap(({ name, prototype, before }) => Object.getOwnPropertyNames(prototype).filter(key => !before.has(key)).map(key => {
    const { get, value } = Object.getOwnPropertyDescriptor(prototype, key)
    return [`${name}.${key}`, get ? `${name}.${key} (accessor)` : label(`${name}.${key}`, value)]
  })))
}

function label(name, value, why = '') {
  return `${name.slice(0, LONGEST)} (${typeName(value).slice(0, LONGEST)}${why && `: ${why.slice(0, LONGEST)}`})`
}

// partsOfModules are how modules, and what they export, are found again.
function partsOfModules(modules) {
  const parts = new Map()
  const add = (value, module) => isCompound(value) && !parts.has(value) && parts.set(value, module)
  const files = Object.entries(require.cache).map(([file, { exports }]) => [file, exports])
  const loaded = builtinModules.filter(name => name === 'process' || process.moduleLoadList.includes(`NativeModule ${name}`)).map(name => [name, require(name)])
  const all = [...loaded, ...files]
  for (const [file, exports] of all) add(exports, { file })
  for (const [value, module] of modules.imported()) add(value, module)
  for (const [file, exports] of all) {
    if (!isCompound(exports) || isProxy(exports)) continue
    for (const [member, property] of Object.entries(Object.getOwnPropertyDescriptors(exports))) add(property.value, { file, member })
  }
  return parts
}

// load has what was saved back, and returns {back, left, more, why}. Remember is told the source of each function, by a name for tracebacks.
export async function load(modules, remember) {
  const { folder, env, entries, left, added = [] } = taken()
  Object.assign(process.env, env)
  attempt(() => process.chdir(folder))
  modules.follow()
  const made = new Map()
  const again = async ({ name, module, made: text, value }) => {
    if (module) return await modules.again(module)
    if (!text) return value
    if (!made.has(text)) {
      const filename = `saved-${text.name || name}` // no path: what it imports is looked for from the working directory
      remember(filename, text.text)
      made.set(text, script(text, filename).runInThisContext()[text.name])
    }
    return made.get(text)
  }
  let back = 0
  for (const entry of entries) {
    try {
      Object.defineProperty(globalThis, entry.name, { value: await again(entry), writable: true, enumerable: true, configurable: true })
      back++
    } catch (error) {
      left.push(`${entry.name.slice(0, LONGEST)} (${String(error?.message).split('\n')[0].slice(0, LONGEST)})`)
    }
  }
  const there = extensions()
  for (const [name, text] of added) if (!there.has(name)) left.push(text)
  return { back, left: left.slice(0, MOST_TOLD), more: Math.max(0, left.length - MOST_TOLD), why: '' }
}

// Reader gives each view a buffer of its own: Node's would be of the whole file.
class Reader extends v8.DefaultDeserializer {
  _readHostObject() {
    const view = super._readHostObject()
    if (Buffer.isBuffer(view)) return Buffer.from(view)
    return new view.constructor(view.buffer.slice(view.byteOffset, view.byteOffset + view.byteLength))
  }
}

// taken is what was saved. The file goes before it is read: a kernel that dies of it is not the first of many.
function taken() {
  const file = openSync(PLACE)
  try {
    unlinkSync(PLACE)
    const reader = new Reader(readFileSync(file))
    reader.readHeader()
    return reader.readValue()
  } finally {
    closeSync(file)
  }
}
