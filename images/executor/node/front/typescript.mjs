// TypeScript: its types are taken out as Node itself does it, which keeps every line and column where it is, and are checked
// apart (types/).
import { Worker } from 'node:worker_threads'
import { RUN, strip } from '../shared.mjs'

const MEMORY = 300 // megabytes for the check of types; it needs half
const PATIENCE = 5000 // milliseconds that a checker which has started may keep a cell from ending

export class TypeScript {
  #ready = false // whether the checker answers at once: at first it reads all that is known of the language
  #prepare
  #types
  #transform // a promise of amaro's function
  #checker = null
  #waiting = new Map()
  #count = 0

  constructor(prepare, types) {
    this.#prepare = prepare
    this.#types = types
    this.#transform = import('amaro').then(({ default: { transformSync } }) => transformSync)
    if (types !== 'off') this.#startChecker()
  }

  #startChecker() {
    this.#checker = new Worker(new URL('../types/thread.mjs', import.meta.url), { execArgv: [], resourceLimits: { maxOldGenerationSizeMb: MEMORY } })
    this.#checker.on('message', ({ ready, id, wrong }) => {
      if (ready) {
        this.#ready = true
        return
      }
      this.#waiting.get(id)(wrong)
      this.#waiting.delete(id)
    })
    this.#checker.on('error', () => { // no memory is left for it, for example: cells run on, unchecked
      this.#checker = null
      for (const resolve of this.#waiting.values()) resolve([])
      this.#waiting.clear()
    })
  }

  // patience is how long the end of a cell waits for the check of its types, in milliseconds.
  get patience() {
    return this.#ready ? PATIENCE : 0
  }

  // close ends the checker's thread.
  async close() {
    await this.#checker?.terminate()
  }

  async translate(source) {
    const { code, map, problem } = await this.#stripped(source)
    if (problem) return { ...this.#prepare(''), problem }
    const wrong = this.#types === 'fail' ? await this.#ask(source) : []
    if (wrong.length > 0) return { ...this.#prepare(''), problem: { message: described(wrong), at: wrong[0].at, final: true } }
    return { ...this.#prepare(code), map, lenient: true }
  }

  // stripped is {code, map}, or {problem}.
  async #stripped(source) {
    const transform = await this.#transform
    try {
      return strip(transform, source)
    } catch (error) {
      return { problem: problemOf(error, source) }
    }
  }

  check(source) {
    const ours = source.trim() === '' || source.startsWith(`await this['${RUN}'](`) // the server's, to run a script
    return this.#types === 'show' && !ours ? this.#told(source) : null
  }

  async #told(source) {
    const wrong = await this.#ask(source)
    return wrong.length > 0 ? `Type errors; the cell has run all the same:\n${described(wrong)}\n` : ''
  }

  async completeness(source) {
    const { problem } = await this.#stripped(source)
    return !problem ? 'complete' : problem.at >= source.trimEnd().length || /<eof>|Unterminated/i.test(problem.message) ? 'incomplete' : 'invalid'
  }

  #ask(source) {
    if (!this.#checker) return Promise.resolve([])
    return new Promise(resolve => {
      this.#waiting.set(++this.#count, resolve)
      this.#checker.postMessage({ id: this.#count, source })
    })
  }
}

function problemOf({ message, startLine = 1, startColumn = 0 }, source) {
  const before = source.split('\n').slice(0, startLine - 1)
  return { message, at: before.reduce((sum, line) => sum + line.length + 1, 0) + startColumn, final: true }
}

function described(wrong) {
  return wrong.map(({ line, code, message, text }) => `line ${line}: TS${code}: ${message}\n    ${text.trim()}`).join('\n')
}
