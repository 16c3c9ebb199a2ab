// Tells which values V8 can write and read as they are (v8.serialize), without running any of the user's code. It would make plain objects of
// instances of classes, call getters, and forget symbols and what is added to a Map.
import { inspect } from 'node:util'
import { isArrayBuffer, isDate, isMap, isProxy, isRegExp, isSet } from 'node:util/types'
import { typeName } from './describe.mjs'
import { Array, ArrayBuffer, Buffer, DataView, Date, Map, Object, Reflect, RegExp, Set, process } from './intrinsics.mjs'

// What it keeps, beside objects and arrays, if it is of just this type and nothing was added to it.
const NUMBERS = ['Int8', 'Uint8', 'Uint8Clamped', 'Int16', 'Uint16', 'Int32', 'Uint32', 'Float32', 'Float64', 'BigInt64', 'BigUint64']
const KEPT = new Set([Map, Set, Date, RegExp, ArrayBuffer, DataView, Buffer, ...NUMBERS.map(name => globalThis[`${name}Array`])].map(type => type.prototype))

export class Data {
  #good = new Set() // objects that are data

  // entry is {value} for data, {why} for what is none.
  entry(value) {
    const waiting = [value], seen = []
    while (waiting.length > 0) {
      const one = waiting.pop()
      if (!isCompound(one) || this.#good.has(one)) continue
      seen.push(one)
      this.#good.add(one)
      if (!partsOf(one, waiting)) {
        for (const object of seen) this.#good.delete(object)
        return { why: one === value ? '' : `${typeName(one)} in it` }
      }
    }
    return { value }
  }
}

export function isCompound(value) {
  return value !== null && (typeof value === 'object' || typeof value === 'function' || typeof value === 'symbol')
}

// partsOf adds what an object consists of to parts. It returns whether nothing of it would be lost.
function partsOf(value, parts) {
  if (typeof value !== 'object' || isProxy(value) || value === process.env) return false
  const type = Object.getPrototypeOf(value)
  if (ArrayBuffer.isView(value)) return KEPT.has(type) && isArrayBuffer(value.buffer) // its properties are its elements
  if (isMap(value)) for (const [key, item] of value) parts.push(key, item)
  if (isSet(value)) for (const item of value) parts.push(item)
  if (isMap(value) || isSet(value) || isDate(value) || isRegExp(value) || isArrayBuffer(value)) {
    return KEPT.has(type) && Reflect.ownKeys(value).every(key => key === 'lastIndex')
  }
  if (type === Array.prototype && isList(value)) return elementsOf(value, parts)
  if (type !== Object.prototype && type !== Array.prototype) return false
  return Reflect.ownKeys(value).every(key => {
    const property = Object.getOwnPropertyDescriptor(value, key)
    if (key === 'length' && type === Array.prototype) return true
    if (typeof key === 'symbol' || !property.enumerable || !('value' in property)) return false
    if (isCompound(property.value)) parts.push(property.value)
    return true
  })
}

// isList tells whether an array has no properties but its elements. To list all takes seconds if there are millions: inspect knows better.
function isList(array) {
  return array.length > 100 && Object.getOwnPropertySymbols(array).length === 0 &&
    /^\[ \.\.\. \d+ more items \]$/.test(inspect(array, { customInspect: false, maxArrayLength: 0 }))
}

function elementsOf(array, parts) {
  for (let i = 0; i < array.length; i++) {
    const property = Object.getOwnPropertyDescriptor(array, i)
    if (property && !('value' in property)) return false
    if (isCompound(property?.value)) parts.push(property.value)
  }
  return true
}
