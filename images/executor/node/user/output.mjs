// What cells print goes to the front, which sends it at once, also while the code that printed it runs on.
import { Console } from 'node:console'
import fs from 'node:fs'
import { syncBuiltinESMExports } from 'node:module'
import { Writable } from 'node:stream'
import { MOST_UNSENT, UNSENT } from '../shared.mjs'
import { Atomics, Buffer, Object, TextDecoder, console, process } from './intrinsics.mjs'

// installOutput replaces standard output and error, and the console that writes to them.
//   post(message)  says something to the front
//   cell()         is the cell that running code belongs to
//   counters       are shared with the front
export function installOutput({ post, cell, counters }) {
  const say = (name, text) => {
    const owner = cell()
    if (owner?.silent || text === '') return
    Atomics.add(counters, UNSENT, text.length)
    post({ op: 'text', cell: owner?.number ?? 0, name, text })
    for (let unsent; (unsent = Atomics.load(counters, UNSENT)) > MOST_UNSENT;) Atomics.wait(counters, UNSENT, unsent)
  }
  const streams = { stdout: new Output('stdout', 1, say), stderr: new Output('stderr', 2, say) }
  for (const [name, stream] of Object.entries(streams)) Object.defineProperty(process, name, { value: stream, configurable: true, enumerable: true, writable: true })
  // Not a console of its own: of every call to Node's, the inspector, which can interrupt, would keep a record.
  const own = new Console({ ...streams, inspectOptions: {} })
  for (const name of Object.keys(console)) if (typeof own[name] === 'function') console[name] = own[name]
  redirectDescriptors(streams)
}

class Output extends Writable {
  #name
  #say
  #decoder = new TextDecoder()

  constructor(name, fd, say) {
    super({ decodeStrings: false, highWaterMark: MOST_UNSENT, emitClose: false, autoDestroy: false })
    this.setMaxListeners(0) // every pipeline leaves one
    this.#name = name
    this.#say = say
    Object.defineProperty(this, 'fd', { value: fd })
  }

  _write(chunk, encoding, done) {
    this.#say(this.#name, typeof chunk === 'string' ? chunk : this.#decoder.decode(chunk, { stream: true }))
    done()
  }

  // Whoever pipes to standard output ends it when he is done, destroys it when that fails, and waits until it says so; others go on.
  end(chunk, encoding, done) {
    if (typeof chunk !== 'function' && chunk != null) this.write(chunk, typeof encoding === 'string' ? encoding : undefined)
    const callback = [chunk, encoding, done].find(value => typeof value === 'function')
    if (callback) process.nextTick(callback)
    process.nextTick(() => this.emit('finish'))
    return this
  }

  destroy() {
    process.nextTick(() => this.emit('close'))
    return this
  }
}

// redirectDescriptors makes what is written to the descriptors 1 and 2 by number go the same way.
function redirectDescriptors(streams) {
  const { writeSync, writeFileSync } = fs
  const to = { 1: streams.stdout, 2: streams.stderr }
  fs.writeSync = (fd, data, ...rest) => {
    if (!(fd in to)) return writeSync(fd, data, ...rest)
    const [offset = 0, length] = rest
    const part = typeof data === 'string' ? data : Buffer.from(data.buffer, data.byteOffset, data.byteLength).subarray(offset, length === undefined ? undefined : offset + length)
    to[fd].write(part)
    return typeof part === 'string' ? Buffer.byteLength(part) : part.length
  }
  fs.writeFileSync = (file, data, options) => {
    if (!(file in to) && file !== '/dev/stdout' && file !== '/dev/stderr') return writeFileSync(file, data, options)
    void (to[file] ?? (file === '/dev/stdout' ? streams.stdout : streams.stderr)).write(data)
  }
  syncBuiltinESMExports()
}

