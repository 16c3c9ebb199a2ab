// Who answers prompts: prompt(), and whatever reads standard input, ask whoever attends the cell.
import fs from 'node:fs'
import { syncBuiltinESMExports } from 'node:module'
import { Readable } from 'node:stream'
import { receiveMessageOnPort } from 'node:worker_threads'
import { ANSWERED } from '../shared.mjs'
import { Atomics, Buffer, Error, Object, String, process, setImmediate } from './intrinsics.mjs'

function nobody() {
  return Object.assign(new Error('nobody can answer here: put the value into the code'), { name: 'StdinNotImplementedError' })
}

// installInput makes prompt() and standard input.
//   refuse(cell, error)  ends a cell that reads what nobody can write: whoever awaits a line would wait for ever
// It returns what is to be called before each cell: standard input is made anew after a cell that has read it, to its end perhaps, or was
// refused or interrupted in the midst of that, or that has destroyed it, as a pipeline does that fails.
export function installInput({ post, cell, answers, counters, refuse }) {
  // ask shows a prompt and waits for what is typed.
  const ask = (text, password) => {
    const owner = cell()
    if (!owner?.input) throw nobody()
    while (receiveMessageOnPort(answers)); // what came too late for somebody else
    Atomics.store(counters, ANSWERED, 0)
    post({ op: 'input', cell: owner.number, prompt: text, password })
    Atomics.wait(counters, ANSWERED, 0)
    const line = receiveMessageOnPort(answers)?.message ?? '\x04'
    if (line.startsWith('\x04')) throw Object.assign(new Error(line.slice(1)), { name: 'EOFError' })
    return line
  }
  const prompt = (text = '', fallback = '') => ask(String(text), false) || fallback
  prompt.password = (text = '') => ask(String(text), true)
  Object.defineProperty(globalThis, 'prompt', { value: prompt, writable: true, configurable: true, enumerable: false })
  readByName(ask)
  let input
  const renew = () => {
    if (input && !input.asked && input.readable) return
    input = new Input({ post, cell, answers, refuse })
    Object.defineProperty(process, 'stdin', { value: input, configurable: true, enumerable: true })
    syncBuiltinESMExports()
  }
  renew()
  return renew
}

// readByName makes what reads all of standard input by its number or name ask for lines until there are no more.
function readByName(ask) {
  const { readFileSync } = fs
  const all = () => {
    let text = ''
    try {
      for (;;) text += ask('', false) + '\n'
    } catch (error) {
      if (error.name !== 'EOFError') throw error
    }
    return text
  }
  fs.readFileSync = (file, options) => {
    if (file !== 0 && file !== '/dev/stdin') return readFileSync(file, options)
    return typeof (options?.encoding ?? options) === 'string' ? all() : Buffer.from(all())
  }
}

// Input is standard input: it asks for a line when somebody reads while a cell runs that may ask.
class Input extends Readable {
  #post
  #cell
  #answers
  #refuse
  #waiting = false
  asked = false // whether somebody has read

  constructor({ post, cell, answers, refuse }) {
    super({ highWaterMark: 0 })
    this.#refuse = refuse
    this.#post = post
    this.#cell = cell
    this.#answers = answers
    this.fd = 0
    answers.unref()
  }

  _read() {
    if (this.#waiting) return
    this.#waiting = true
    setImmediate(() => this.#ask())
  }

  #ask() {
    this.#waiting = false
    const read = !this.isPaused() || this.listenerCount('readable') > 0
    if (!read || this.destroyed) return void this.once('resume', () => this._read())
    this.asked = true
    const owner = this.#cell()
    if (!owner?.input) return this.#refuse(owner, nobody())
    this.#waiting = true
    this.#answers.removeAllListeners('message') // of a reader that was interrupted
    this.#answers.once('message', line => {
      this.#answers.unref()
      this.#waiting = false
      this.push(line.startsWith('\x04') ? null : line + '\n')
    })
    this.#post({ op: 'input', cell: owner.number, prompt: '', password: false })
  }
}
