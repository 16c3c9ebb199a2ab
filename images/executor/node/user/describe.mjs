// Describes values for people who ask what a name stands for, without running any of the user's code.
import { inspect } from 'node:util'
import { isProxy } from 'node:util/types'
import { Array, ArrayBuffer, JSON, Map, Object, Set, Symbol, performance } from './intrinsics.mjs'
import { defined, lookUp, nameAt } from './names.mjs'

const MOST = 200 // variables; the newest are described
const PREVIEW = 80 // characters
const MANY = 100 // properties
const SECONDS = 1000 // milliseconds in all

const VARIABLES = 'application/vnd.cellblock.variables+json'
const DISPLAY = Symbol.for('Jupyter.display')
const source = Function.prototype.toString

// inspection answers an inspect_request.
export function inspection({ code, cursor, detail }) {
  const name = nameAt(code, cursor)
  const found = name && lookUp(name)
  if (!found) return { status: 'ok', found: false, data: {}, metadata: {} }
  const { value } = found
  const text = typeof value === 'function' ? functionText(value, detail) : inspect(value, { customInspect: false, depth: 2 })
  return { status: 'ok', found: true, data: { 'text/plain': `${name}: ${typeName(value)}\n${text}` }, metadata: {} }
}

function functionText(value, detail) {
  return detail > 0 ? source.call(value) : signature(value)
}

// described is what the server evaluates to get the session's variables.
export function described() {
  return answer(variables())
}

// answer is what the value of an expression has the server read.
export function answer(content) {
  return { [DISPLAY]: () => ({ [VARIABLES]: JSON.stringify(content), 'text/plain': 'variables' }) }
}

function variables() {
  const names = defined()
  const deadline = performance.now() + SECONDS
  const all = []
  for (const name of names.slice(-MOST).reverse()) {
    if (performance.now() > deadline) break
    all.unshift({ name: clip(name), ...about(lookUp(name)) })
  }
  return { variables: all, more: names.length - all.length }
}

function about(found) {
  if (!found) return { type: 'accessor' }
  const { value } = found
  const type = clip(typeName(value))
  try {
    return { type, ...size(value), preview: preview(value) }
  } catch (error) {
    return { type, preview: `not described: ${error?.constructor?.name}` }
  }
}

export function typeName(value) {
  if (value === null) return 'null'
  if (isProxy(value)) return 'Proxy'
  if (typeof value === 'function') return /^class\b/.test(source.call(value)) ? 'class' : 'function'
  if (typeof value !== 'object') return typeof value
  for (let object = value; object && !isProxy(object); object = Object.getPrototypeOf(object)) {
    const own = Object.getOwnPropertyDescriptor(object, 'constructor')?.value
    if (typeof own === 'function') return own.name || 'Object'
  }
  return 'Object'
}

function size(value) {
  if (typeof value === 'string' || Array.isArray(value) && !isProxy(value)) return { length: value.length }
  if (ArrayBuffer.isView(value)) return { length: value.length ?? value.byteLength, bytes: value.byteLength }
  if (value instanceof Map || value instanceof Set) return { length: value.size }
  return {}
}

function preview(value) {
  if (typeof value === 'function') return clip(signature(value))
  const many = value !== null && typeof value === 'object' && !isProxy(value) && !Array.isArray(value) && !ArrayBuffer.isView(value) ? Object.keys(value).length : 0
  if (many > MANY) return `{… ${many} properties}`
  return clip(inspect(value, { customInspect: false, depth: 1, maxArrayLength: 10, maxStringLength: PREVIEW, breakLength: Infinity, compact: true }))
}

// signature is the beginning of a function's source.
function signature(value) {
  const text = source.call(value)
  const end = /^class\b/.test(text) ? text.indexOf('{') : endOfHead(text)
  return text.slice(0, end < 0 ? undefined : end).replace(/\s+/g, ' ').trim()
}

// endOfHead is where a function's parameters end.
function endOfHead(text) {
  let depth = 0
  for (let i = 0; i < text.length; i++) {
    if (text[i] === '(') depth++
    if (text[i] === ')' && --depth === 0) return i + 1
    if (depth === 0 && text.startsWith('=>', i)) return i
  }
  return -1
}

function clip(text) {
  return text.length <= PREVIEW ? text : text.slice(0, PREVIEW - 1) + '…'
}
