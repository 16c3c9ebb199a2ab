// Jupyter's framing (Jupyter messaging, "The wire protocol"): frames to messages and back, and signatures. No sockets.
import { createHmac, randomBytes, timingSafeEqual } from 'node:crypto'

const DELIMITER = Buffer.from('<IDS|MSG>')
export const VERSION = '5.3'

export class Wire {
  #key
  #session = randomBytes(8).toString('hex')
  #count = 0

  constructor(key) {
    this.#key = key
  }

  // parse reads a message's frames. It throws at one that is malformed or has a wrong signature.
  parse(frames) {
    const at = frames.findIndex(frame => frame.equals(DELIMITER))
    if (at < 0 || frames.length < at + 6) throw new Error('a message of too few frames')
    const parts = frames.slice(at + 2, at + 6)
    if (!this.#right(frames[at + 1], parts)) throw new Error('a wrong signature')
    const [header, parent, metadata, content] = parts.map(part => JSON.parse(part.toString()))
    if (typeof header?.msg_type !== 'string' || typeof header.msg_id !== 'string') throw new Error('a header without type or id')
    return { identities: frames.slice(0, at), header, parent, metadata, content: content ?? {}, buffers: frames.slice(at + 6) }
  }

  // pack makes the frames of a new message.
  pack(identities, type, parent, content, metadata = {}) {
    const header = { msg_id: `${this.#session}_${++this.#count}`, session: this.#session, username: 'kernel', date: new Date().toISOString(), msg_type: type, version: VERSION }
    const parts = [header, parent ?? {}, metadata, content].map(part => JSON.stringify(part))
    return [...identities, DELIMITER, this.#sign(parts), ...parts]
  }

  #sign(parts) {
    if (!this.#key) return ''
    const mac = createHmac('sha256', this.#key)
    for (const part of parts) mac.update(part)
    return mac.digest('hex')
  }

  #right(signature, parts) {
    const expected = Buffer.from(this.#sign(parts))
    return signature.length === expected.length && timingSafeEqual(signature, expected)
  }
}
