// What names stand for, found out without running any of the user's code: getters are not called.
import { isProxy } from 'node:util/types'
import { isBuiltIn } from './builtins.mjs'
import { Map, Object, Set } from './intrinsics.mjs'

const KEYWORDS = ['async', 'await', 'break', 'case', 'catch', 'class', 'const', 'continue', 'default', 'delete', 'else', 'export', 'extends',
  'false', 'finally', 'for', 'function', 'import', 'instanceof', 'let', 'new', 'null', 'return', 'static', 'super', 'switch', 'this', 'throw',
  'true', 'try', 'typeof', 'undefined', 'void', 'while', 'yield']

const path = /(?:[\p{ID_Start}$_][\p{ID_Continue}$]*\??\.)*(?:[\p{ID_Start}$_][\p{ID_Continue}$]*)?$/u

const builtIn = new Map() // how each name was defined

// rememberBuiltIns takes note of what there is before any cell has run.
export function rememberBuiltIns() {
  for (const name of Object.getOwnPropertyNames(globalThis)) builtIn.set(name, Object.getOwnPropertyDescriptor(globalThis, name))
}

// defined are the names that cells have defined, in the order in which they did. Names of Node's to which they have given something else
// come first.
export function defined() {
  return Object.getOwnPropertyNames(globalThis).filter(name => builtIn.has(name) ? isTaken(name) : !isBuiltIn(find(globalThis, name)))
}

// isTaken tells whether a name of Node's stands for a cell's value, which is enumerable; what the kernel itself changes (require) is not.
function isTaken(name) {
  const { value, enumerable } = find(globalThis, name), before = builtIn.get(name)
  return enumerable && value !== undefined && value !== (before.get ? before.get.call(globalThis) : before.value)
}

// complete answers what could stand at the cursor. Positions are in JavaScript's units.
export function complete({ code, cursor }) {
  const [before] = path.exec(code.slice(0, cursor))
  const dot = before.lastIndexOf('.')
  const prefix = before.slice(dot + 1)
  const candidates = dot < 0 ? [...properties(globalThis), ...KEYWORDS] : properties(lookUp(before.slice(0, dot))?.value)
  const matches = [...new Set(candidates)].filter(name => name.startsWith(prefix) && /^[\p{ID_Start}$_]/u.test(name)).sort()
  const start = [...code.slice(0, cursor - prefix.length)].length
  return { status: 'ok', matches, cursor_start: start, cursor_end: start + [...prefix].length, metadata: {} }
}

// nameAt returns the dotted name under the cursor, "" if there is none.
export function nameAt(code, cursor) {
  const [left] = path.exec(code.slice(0, cursor))
  const [right] = /^[\p{ID_Continue}$]*/u.exec(code.slice(cursor))
  return left + right || path.exec(code.slice(0, cursor).replace(/\([^()]*$/, ''))[0]
}

// lookUp returns {value} for a dotted name, undefined if there is no such thing.
export function lookUp(name) {
  let found = { value: globalThis }
  for (const part of name.split(/\??\./)) {
    const property = find(found.value, part)
    // What Node has made lazy is no code of the user's.
    if (property?.get && found.value === globalThis && (builtIn.has(part) || isBuiltIn(property))) found = { value: globalThis[part] }
    else if (property && 'value' in property) found = { value: property.value }
    else return undefined
  }
  return found
}

function find(value, name) {
  for (const object of chain(value)) {
    const property = Object.getOwnPropertyDescriptor(object, name)
    if (property) return property
  }
}

function properties(value) {
  return chain(value).flatMap(object => Object.getOwnPropertyNames(object))
}

// chain is an object and its prototypes. A proxy has none: it would ask the user's code.
function chain(value) {
  const objects = []
  for (let object = value == null ? null : Object(value); object && !isProxy(object); object = Object.getPrototypeOf(object)) objects.push(object)
  return objects
}
