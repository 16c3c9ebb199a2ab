// The globals that the kernel uses in the thread of the user's code, as they were before that could give their names to
// something else: const { Map } = require('immutable') is for the cells alone.
export const {
  Array, ArrayBuffer, Atomics, Buffer, DataView, Date, Error, JSON, Map, Math,
  Number, Object, Promise, Reflect, RegExp, Set, String, Symbol, SyntaxError, TextDecoder,
  URL, Uint8Array, WeakMap, WeakSet, clearInterval, console, performance, process, setImmediate,
} = globalThis
