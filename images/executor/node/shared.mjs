// What the two threads of the kernel share beside the messages between them.

// Slots of the shared Int32Array.
export const UNSENT = 0 // characters of output that the front has not sent yet
export const ANSWERED = 1 // 1 when the answer to a prompt is there
export const SLOTS = 2

// MOST_UNSENT is how many characters may wait before user code that prints has to.
export const MOST_UNSENT = 8 << 20

// Properties of the global object by which the front and the server reach the kernel in the thread of the user's code. They are
// reached through this, as in this['cellblock run'](…): every other name may be the user's.
export const INTERRUPT = 'cellblock interrupt'
export const VARIABLES = 'cellblock variables'
export const RUN = 'cellblock run'
export const SAVE = 'cellblock save'
export const LOAD = 'cellblock load'

// strip takes the types out of TypeScript, with amaro's transformSync: every line and column stays where it is, unless something is code
// besides, an enum, for example. Then lines may move, as the map tells.
export function strip(transform, source) {
  try {
    return transform(source, { mode: 'strip-only' })
  } catch (error) {
    if (error.code !== 'UnsupportedSyntax') throw error
  }
  return transform(source, { mode: 'transform', sourceMap: true })
}
