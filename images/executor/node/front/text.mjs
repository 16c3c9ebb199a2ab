// Gathers what cells print, so that many small writes become few messages.

const PAUSE = 5 // milliseconds
const FULL = 1 << 18 // characters

export class Text {
  #publish
  #pending = [] // {cell, name, text, size}, in order
  #size = 0
  #timer = null

  // publish(cell, name, text) sends a piece of text.
  constructor(publish) {
    this.#publish = publish
  }

  add(cell, name, text) {
    const last = this.#pending.at(-1)
    if (last?.cell === cell && last.name === name) last.text += text
    else this.#pending.push({ cell, name, text })
    this.#size += text.length
    if (this.#size >= FULL) this.flush()
    else this.#timer ??= setTimeout(() => this.flush(), PAUSE)
  }

  // flush sends what there is: before anything else that a cell shows, and at its end.
  flush() {
    clearTimeout(this.#timer)
    this.#timer = null
    const pending = this.#pending
    this.#pending = []
    this.#size = 0
    for (const { cell, name, text } of pending) this.#publish(cell, name, text)
  }
}
