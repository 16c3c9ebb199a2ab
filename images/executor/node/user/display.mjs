// What a value looks like, and display(), which shows one before the cell has ended.
import { isProxy } from 'node:util/types'
import { inspect } from 'node:util'
import { Buffer, Object, Symbol, Uint8Array, WeakSet } from './intrinsics.mjs'

// DISPLAY is the key of a method by which an object says what it looks like: it returns a MIME bundle, {"text/html": …}. Deno's
// notebooks have made it known.
const DISPLAY = Symbol.for('Jupyter.display')

// made are bundles that display.html and the like have made.
const made = new WeakSet()

const TEXT = { depth: 4, maxArrayLength: 200, maxStringLength: 100_000, breakLength: 100, compact: 3 }

// bundle returns data and metadata of a value, as messages have them.
export function bundle(value) {
  const data = bundleOf(value) ?? { 'text/plain': plain(value) }
  return { data, metadata: {} }
}

function plain(value) {
  return inspect(value, TEXT)
}

function bundleOf(value) {
  if (value === null || typeof value !== 'object' && typeof value !== 'function' || isProxy(value)) return null
  if (made.has(value)) return { ...value }
  if (typeof value[DISPLAY] === 'function') return encoded(value[DISPLAY]())
  if (value instanceof Uint8Array) return image(value)
  if (typeof value.toBuffer === 'function' && typeof value.getContext === 'function') return canvas(value)
  return null
}

// canvas is what the known canvas libraries draw on.
function canvas(value) {
  const drawn = value.toBuffer('image/png')
  return drawn instanceof Uint8Array ? image(drawn) : null
}

const signatures = { 'image/png': [0x89, 0x50, 0x4e, 0x47], 'image/jpeg': [0xff, 0xd8, 0xff], 'image/gif': [0x47, 0x49, 0x46, 0x38] }

// image is the bundle of the bytes of an image; of other bytes there is none.
function image(bytes) {
  for (const [type, signature] of Object.entries(signatures)) {
    if (signature.every((byte, i) => bytes[i] === byte)) return { [type]: base64(bytes), 'text/plain': `<${type}, ${bytes.length} bytes>` }
  }
  return null
}

function base64(bytes) {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('base64')
}

// encoded is a bundle with what is not text in it made text.
function encoded(data) {
  if (data === null || typeof data !== 'object') return null
  return Object.fromEntries(Object.entries(data).map(([type, value]) => [type, value instanceof Uint8Array ? base64(value) : value]))
}

// installDisplay makes the global display. publish(type, content) sends a message of the running cell.
export function installDisplay({ publish }) {
  let ids = 0
  const show = (type, value, raw, id) => {
    const content = raw ? { data: encoded(value), metadata: {} } : bundle(value)
    publish(type, { ...content, transient: { display_id: id } })
  }
  const display = (value, { raw = false, id = `display-${++ids}` } = {}) => {
    show('display_data', value, raw, id)
    return handle(id)
  }
  const handle = id => hidden({ id, update: (value, { raw = false } = {}) => show('update_display_data', value, raw, id) })
  const kinds = {
    html: 'text/html', markdown: 'text/markdown', latex: 'text/latex', svg: 'image/svg+xml', text: 'text/plain', json: 'application/json',
    png: 'image/png', jpeg: 'image/jpeg',
  }
  for (const [name, type] of Object.entries(kinds)) {
    display[name] = (value, options) => display(make(type, value), options)
  }
  display.update = (id, value, options) => handle(id).update(value, options)
  display.clear = (wait = false) => publish('clear_output', { wait })
  Object.defineProperty(globalThis, 'display', { value: display, writable: true, configurable: true, enumerable: false })
}

function make(type, value) {
  const data = encoded({ [type]: value })
  made.add(data)
  return data
}

// hidden is a handle that shows nothing of itself as a cell's value.
function hidden(value) {
  return Object.assign(Object.create({ [DISPLAY]: () => ({}) }), value)
}
