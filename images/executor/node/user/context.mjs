// The cell that code belongs to, also when it runs later. Before Node 24 it stands in every promise and timer, where whoever prints one
// would see it, beside other things of Node's own.
import { AsyncLocalStorage } from 'node:async_hooks'
import { inspect } from 'node:util'
import { Object, Promise, Reflect } from './intrinsics.mjs'

export function cellContext() {
  const cells = new AsyncLocalStorage()
  const key = cells.kResourceStore
  const propagate = cells._propagate
  if (!key || !propagate) return cells
  cells._propagate = (resource, trigger, type) => {
    if (type === 'PROMISE') propagate.call(cells, resource, trigger, type) // of them there are many: what hides it would take its time
    else if (cells.enabled) Object.defineProperty(resource, key, { value: trigger[key], writable: true, configurable: true })
  }
  const added = cells.run({}, () => Object.getOwnPropertySymbols(Promise.resolve()))
  Object.defineProperty(Promise.prototype, inspect.custom, { writable: true, configurable: true, value() {
    for (const symbol of added) if (Object.hasOwn(this, symbol)) Reflect.defineProperty(this, symbol, { enumerable: false }) // unless it is frozen
    return this // to be shown as it is
  } })
  return cells
}
