// Who answers prompts: prompt(), and whatever reads standard input, ask whoever attends the cell.
import { Readable } from 'node:stream'
import { receiveMessageOnPort } from 'node:worker_threads'
import { ANSWERED } from '../shared.mjs'
import { Atomics, Error, Object, String, process, setImmediate } from './intrinsics.mjs'

function nobody() {
  return Object.assign(new Error('nobody can answer here: put the value into the code'), { name: 'StdinNotImplementedError' })
}

// installInput makes prompt() and standard input.
//   refuse(cell, error)  ends a cell that reads what nobody can write: whoever awaits a line would wait for ever
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
  Object.defineProperty(process, 'stdin', { value: new Input({ post, cell, answers, refuse }), configurable: true, enumerable: true })
}

// Input is standard input: it asks for a line when somebody reads while a cell runs that may ask.
class Input extends Readable {
  #post
  #cell
  #answers
  #refuse
  #waiting = false

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
    if (this.isPaused() || this.destroyed) return void this.once('resume', () => this._read())
    const owner = this.#cell()
    if (!owner?.input) return this.#refuse(owner, nobody())
    this.#waiting = true
    this.#answers.once('message', line => {
      this.#answers.unref()
      this.#waiting = false
      this.push(line.startsWith('\x04') ? null : line + '\n')
    })
    this.#post({ op: 'input', cell: owner.number, prompt: '', password: false })
  }
}
