// What a cell has left for later does not happen once it was interrupted: its timers stay silent, so that code that awaits
// them goes no further. Code that awaits something else runs into Interrupted with what it prints or fetches next.
import timers from 'node:timers'
import promises from 'node:timers/promises'
import { syncBuiltinESMExports } from 'node:module'
import { Object, Promise, clearInterval } from './intrinsics.mjs'

export function asynchronous({ cell }) {
  for (const name of ['setTimeout', 'setInterval', 'setImmediate']) {
    const set = timers[name]
    const replaced = silenced(set, name)
    Object.defineProperties(replaced, Object.getOwnPropertyDescriptors(set))
    timers[name] = globalThis[name] = replaced
  }
  for (const name of ['setTimeout', 'setImmediate']) {
    const wait = promises[name]
    promises[name] = (...args) => unlessInterrupted(wait(...args), cell())
  }
  syncBuiltinESMExports()

  function silenced(set, name) {
    return { [name](callback, ...args) {
      const owner = cell()
      if (!owner || typeof callback !== 'function') return set(callback, ...args)
      return set(function (...values) {
        if (!owner.interrupted) return callback.apply(this, values)
        if (name === 'setInterval') clearInterval(this)
      }, ...args)
    } }[name]
  }
}

// unlessInterrupted is a promise that does not settle once its cell was interrupted.
function unlessInterrupted(promise, owner) {
  if (!owner) return promise
  return new Promise((resolve, reject) => {
    promise.then(value => owner.interrupted || resolve(value), error => owner.interrupted || reject(error))
  })
}
