// What the two threads of the kernel share beside the messages between them.

// Slots of the shared Int32Array.
export const UNSENT = 0 // characters of output that the front has not sent yet
export const ANSWERED = 1 // 1 when the answer to a prompt is there
export const SLOTS = 2

// MOST_UNSENT is how many characters may wait before user code that prints has to.
export const MOST_UNSENT = 8 << 20

// HOOK is the key of process under which the front finds what interrupts the user's code.
export const HOOK = Symbol.for('cellblock.interrupt')
