// Tells which functions their source makes again in another kernel: those that have nothing but the session's variables, and say so. Classes
// do not: to make one runs code of the user's.
import { Session } from 'node:inspector'
import { isProxy } from 'node:util/types'
import vm from 'node:vm'
import { JSON, Map, Object, Reflect, String } from './intrinsics.mjs'

const source = Function.prototype.toString
const OWN = ['length', 'name', 'arguments', 'caller', 'prototype'] // properties that V8 gives functions
const tellsStrict = Reflect.ownKeys(vm.runInThisContext('(function () {})')).includes('caller') // a strict one has no such property

export class Functions {
  #session = new Session()
  #entries = new Map() // two names of one function are that again

  constructor() {
    this.#session.connect()
  }

  close() {
    this.#session.disconnect()
  }

  // entry is {made} for a function that a name stands for, what script() needs, or {why}.
  entry(name, value) {
    if (!this.#entries.has(value)) this.#entries.set(value, this.#made(name, value))
    return this.#entries.get(value)
  }

  #made(name, value) {
    if (isProxy(value)) return { why: '' }
    const text = source.call(value)
    if (/^class\b/.test(text) || !isItsSource(value, text)) return { why: '' }
    if (this.#closes(name)) return { why: 'a closure' }
    return { made: { name: nameOf(value), text } }
  }

  // closes tells whether a function sees variables that are not the session's. V8 knows; an arrow's this it does not tell.
  #closes(name) {
    const { result } = this.#ask('Runtime.evaluate', { expression: `this[${JSON.stringify(name)}]` })
    const { internalProperties } = this.#ask('Runtime.getProperties', { objectId: result.objectId, ownProperties: true })
    const scopes = internalProperties.find(({ name }) => name === '[[Scopes]]').value
    const list = this.#ask('Runtime.getProperties', { objectId: scopes.objectId, ownProperties: true }).result
    this.#ask('Runtime.releaseObject', { objectId: result.objectId })
    return list.some(({ value }) => value?.type === 'object' && !/^(Script|Global)$/.test(value.description))
  }

  #ask(method, parameters) {
    let answer
    this.#session.post(method, parameters, (error, result) => {
      if (error) throw error
      answer = result
    })
    return answer
  }
}

// isItsSource tells whether a function is no more than its source says.
function isItsSource(value, text) {
  const keys = Reflect.ownKeys(value)
  const prototype = Object.getOwnPropertyDescriptor(value, 'prototype')?.value
  if (keys.some(key => !OWN.includes(key))) return false
  if (prototype && Reflect.ownKeys(prototype).some(key => key !== 'constructor')) return false
  if (prototype && ![Object.prototype, Object.getPrototypeOf(value).prototype].includes(Object.getPrototypeOf(prototype))) return false // it inherits
  if (/^function\b(?!\s*\*)/.test(text) && tellsStrict && !keys.includes('caller')) return false // it is strict, as its cell was
  if (!/^(async\s+)?function\b/.test(text) && /\b(this|arguments|super|new\.target)\b/.test(text)) return false
  return isReadable(value, text)
}

// isReadable is false for methods, whose source is none without their object, and for Node's own functions.
function isReadable(value, text) {
  try {
    script({ name: nameOf(value), text }, '')
    return true
  } catch {
    return false
  }
}

// nameOf is a function's name, unless it is a getter.
function nameOf(value) {
  return String(Object.getOwnPropertyDescriptor(value, 'name')?.value ?? '')
}

// script is what makes a function again, as a property of its name.
export function script({ name, text }, filename) {
  const before = `({ ${JSON.stringify(name)}: `
  return new vm.Script(`${before}${text}\n})`, { filename, columnOffset: -before.length, importModuleDynamically: vm.constants.USE_MAIN_CONTEXT_DEFAULT_LOADER })
}
