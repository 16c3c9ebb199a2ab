// Runs what the front hands over, in the main thread: cells, and questions about what they have defined.
import { readFileSync } from 'node:fs'
import { Session } from 'node:inspector'
import { resolve } from 'node:path'
import { isPromise } from 'node:util/types'
import vm from 'node:vm'
import { INTERRUPT, LOAD, RUN, SAVE, VARIABLES } from '../shared.mjs'
import { asynchronous } from './background.mjs'
import { installBuiltIns, isBuiltIn } from './builtins.mjs'
import { cellContext } from './context.mjs'
import { answer, described, inspection } from './describe.mjs'
import { bundle, installDisplay } from './display.mjs'
import { Errors } from './errors.mjs'
import { installInput } from './input.mjs'
import { Error, Number, Object, Promise, Symbol, SyntaxError, WeakMap, process, setImmediate } from './intrinsics.mjs'
import { Modules } from './modules.mjs'
import { complete, rememberBuiltIns } from './names.mjs'
import { installOutput } from './output.mjs'
import { installPrograms } from './programs.mjs'
import { load, save } from './saved.mjs'

const then = Promise.prototype.then
const nothing = () => {}
// soon lets what a cell has begun with promises alone come to its end, and rejections that nobody handles be told.
const soon = setImmediate
const handleFatal = process._fatalException.bind(process)
const capture = process.setUncaughtExceptionCaptureCallback.bind(process)

// Interrupted is what a cell ends with that was interrupted, and what its remains run into.
export class Interrupted extends Error {
  constructor() {
    super('interrupted')
    this.name = 'KeyboardInterrupt'
  }
}

export class Runner {
  #front
  #inspector = new Session() // of this thread, for ending what it runs
  #cells = cellContext()
  #current = null
  #last = null // the one that ran last
  #interrupted = 0 // the number of the last cell that was interrupted before it began
  #programs = false // whether the user's code has started any that print by themselves
  #errors = new Errors()
  #modules = new Modules()
  #prepared = null // takes what the front has made of a script
  #renewInput
  #problems = new WeakMap() // what was wrong with scripts' sources, by the errors

  constructor({ front, answers, counters }) {
    this.#front = front
    this.#inspector.connect()
    const post = message => front.postMessage(message)
    const cell = () => this.#cell()
    installOutput({ post, cell, counters })
    this.#renewInput = installInput({ post, cell, answers, counters, refuse: (owner, error) => owner && this.#fail(owner, error) })
    installDisplay({ publish: (type, content) => this.#publish(this.#cell(), type, content) })
    asynchronous({ cell: () => this.#cells.getStore() })
    install(INTERRUPT, cell => this.#interrupt(cell))
    install(VARIABLES, described)
    install(SAVE, () => answer(save(this.#modules)))
    install(LOAD, async () => answer(await load(this.#modules, (name, source) => this.#errors.remember(name, source))))
    install(RUN, path => this.#runFile(path))
    this.#modules.follow()
    rememberBuiltIns()
    installBuiltIns()
    this.#survive()
  }

  start() {
    this.#front.on('message', message => this[message.op]?.(message))
  }

  // owner is the cell that running code belongs to; code of nobody's (a native library's) belongs to the one that runs.
  #owner() {
    return this.#cells.getStore() ?? this.#current ?? this.#last
  }

  // cell is the owner, unless that was interrupted: what is left of it ends here.
  #cell() {
    const cell = this.#owner()
    if (cell?.interrupted) throw new Interrupted()
    return cell
  }

  async begin({ path }) {
    await installPrograms({ path, begun: () => { this.#programs = true } })
    this.#front.postMessage({ op: 'begun' })
  }

  execute(request) {
    const cell = { number: request.cell, silent: request.silent, count: request.count, input: request.input, name: `cell-${request.count}`, declared: [] }
    this.#current = this.#last = cell
    this.#renewInput()
    if (this.#interrupted === cell.number) return this.#fail(cell, new Interrupted())
    this.#errors.remember(cell.name, request.source, request.map)
    this.#cells.run(cell, () => this.#run(cell, request))
  }

  complete(request) {
    this.#answer(request, complete)
  }

  inspect(request) {
    this.#answer(request, inspection)
  }

  // answer deals with a question as with a cell, so that it can be interrupted.
  #answer(request, answer) {
    const cell = { number: request.cell, silent: true, declared: [] }
    this.#current = cell
    try {
      this.#done(cell, answer(request))
    } catch (error) {
      this.#fail(cell, error)
    }
  }

  #run(cell, request) {
    let value
    try {
      this.#modules.follow()
      value = this.#evaluate(request, cell.name)
    } catch (error) {
      return this.#fail(cell, error, request.problem && { ...request.problem, shift: request.shift, file: cell.name })
    }
    const succeed = value => soon(() => this.#succeed(cell, request, value))
    if (!isPromise(value)) return succeed(value)
    then.call(value, succeed, error => this.#fail(cell, error))
  }

  // runFile runs a script as if it were in the cell, but with its own name.
  async #runFile(path) {
    const file = resolve(path)
    const source = readFileSync(file, 'utf8')
    const prepared = await new Promise(resolve => {
      this.#prepared = resolve
      this.#front.postMessage({ op: 'prepare', source })
    })
    this.#modules.beAt(file)
    this.#errors.remember(file, source, prepared.map)
    try {
      await this.#evaluate({ ...prepared, shows: false }, file)
    } catch (error) {
      if (prepared.problem) this.#problems.set(error, { ...prepared.problem, shift: prepared.shift, file })
      throw error
    }
  }

  prepared({ prepared }) {
    this.#prepared(prepared)
  }

  // evaluate runs a cell's scripts and returns its value, or a promise of it.
  #evaluate({ code, functions, names, shows, shift, async, lenient, problem }, filename) {
    if (problem?.final) throw new SyntaxError(problem.message)
    const fresh = declare(names)
    this.#owner()?.declared.push(fresh)
    const succeed = value => {
      keep(fresh)
      return value
    }
    const fail = error => {
      undeclare(fresh)
      throw error
    }
    try {
      if (functions) this.#script(functions, filename, 0).runInThisContext()
      const value = this.#script(code, filename, shift).runInThisContext()
      if (!async) return succeed(shows ? value : undefined)
      const imports = (specifier, wanted, attributes) => this.#modules.import(specifier, wanted, attributes, lenient)
      return then.call(value(imports), result => succeed(result?.value), fail)
    } catch (error) {
      return fail(error)
    }
  }

  #script(code, filename, shift) {
    return new vm.Script(code, { filename, columnOffset: -shift, importModuleDynamically: vm.constants.USE_MAIN_CONTEXT_DEFAULT_LOADER })
  }

  #succeed(cell, request, value) {
    if (cell !== this.#current) return
    try {
      if (value !== undefined && !cell.silent) {
        const shown = bundle(value)
        if (Object.keys(shown.data).length > 0) this.#publish(cell, 'execute_result', { ...shown, execution_count: cell.count })
      }
      const done = answers => this.#done(cell, { status: 'ok', execution_count: cell.count, payload: [], user_expressions: answers })
      if (Object.keys(request.expressions).length === 0) done({})
      else then.call(this.#expressions(request.expressions), answers => cell === this.#current && done(answers))
    } catch (error) {
      this.#fail(cell, error)
    }
  }

  #fail(cell, error, problem) {
    if (cell !== this.#current) return
    const content = this.#errors.describe(error, problem ?? this.#problems.get(Object(error)))
    if (!cell.silent) this.#publish(cell, 'error', content)
    this.#done(cell, { status: 'error', execution_count: cell.count, ...content })
  }

  // expressions evaluates what a request wants to know beside its code.
  async #expressions(expressions) {
    const answers = {}
    for (const name of Object.keys(expressions)) {
      try {
        answers[name] = { status: 'ok', ...bundle(await this.#script(`(${expressions[name]}\n)`, 'expression', 1).runInThisContext()) }
      } catch (error) {
        answers[name] = { status: 'error', ...this.#errors.describe(error) }
      }
    }
    return answers
  }

  #publish(cell, type, content) {
    if (cell) this.#front.postMessage({ op: 'publish', cell: cell.number, type, content })
  }

  // done ends the cell. From here on no interrupt finds it. One that was interrupted has come to no end of its own.
  #done(cell, content) {
    this.#current = null
    cell.declared.forEach(undeclare)
    this.#front.postMessage({ op: 'done', cell: cell.number, content, programs: this.#programs })
  }

  // interrupt is called by the front, in the middle of whatever runs.
  #interrupt(number) {
    const cell = this.#current
    if (cell?.number !== number) {
      this.#interrupted = number
      return
    }
    cell.interrupted = true
    this.#fail(cell, new Interrupted())
    this.#unwind()
  }

  // unwind ends the JavaScript that runs. Node does not expect that of callbacks: what it knows of who has called whom is
  // cleared as after an error that nobody has caught, or else it would find it wrong and end the process.
  #unwind() {
    capture(nothing)
    handleFatal(undefined)
    capture(null)
    this.#inspector.post('Runtime.terminateExecution', nothing)
  }

  // survive keeps errors that nobody catches, and process.exit, from ending the kernel.
  #survive() {
    const report = kind => error => {
      if (error instanceof Interrupted) return
      if (this.#owner()?.interrupted) return
      process.stderr.write(`${kind}:\n${this.#errors.describe(error).traceback.join('\n')}\n`)
    }
    process.on('uncaughtException', report('Uncaught, in the background'))
    process.on('unhandledRejection', report('Unhandled rejection'))
    process.on('SIGINT', () => this.#front.postMessage({ op: 'interrupt' }))
    process.exit = process.reallyExit = code => this.#exit(code)
  }

  // exit ends the cell that asks for the process's end.
  #exit(code = process.exitCode ?? 0) {
    const cell = this.#cell()
    process.exitCode = undefined
    if (!cell || cell !== this.#current) throw new Error(`process.exit(${code}) in the background ends nothing: the session goes on`)
    if (Number(code) === 0) this.#done(cell, { status: 'ok', execution_count: cell.count, payload: [], user_expressions: {} })
    else this.#fail(cell, Object.assign(new Error(`process.exit(${code}) has ended the cell; the session goes on`), { name: 'Exit', stack: '' }))
    this.#unwind()
    for (;;); // until that takes effect
  }
}

// install makes a property of the global object that cells cannot take away.
function install(key, value) {
  Object.defineProperty(globalThis, key, { value })
}

// declare makes sure that a cell can define these names: what Node has made lazy or read-only becomes a plain property. It returns
// those that are new, each with how one finds out that the cell has not got to it, and with what had the name before.
function declare(names) {
  const fresh = []
  for (const name of names) {
    const property = Object.getOwnPropertyDescriptor(globalThis, name)
    if (isBuiltIn(property) || !(name in globalThis)) fresh.push({ name, get: expect(name), before: property })
    else if (property && 'value' in property && property.writable || property && !property.configurable) continue
    else define(name, property && globalThis[name])
  }
  return fresh
}

function define(name, value) {
  Object.defineProperty(globalThis, name, { value, writable: true, enumerable: true, configurable: true })
}

// expect makes a name undefined, and the last of all, until the cell defines it, be it as undefined. It returns the getter, which is there
// until then.
function expect(name) {
  delete globalThis[name]
  const get = () => undefined
  Object.defineProperty(globalThis, name, { get, set: value => define(name, value), enumerable: true, configurable: true })
  return get
}

function isExpected({ name, get }) {
  return Object.getOwnPropertyDescriptor(globalThis, name)?.get === get
}

// keep leaves undefined what a cell that has succeeded did not get to: a var in a branch that was not taken.
function keep(fresh) {
  for (const one of fresh) if (isExpected(one)) define(one.name, undefined)
}

// undeclare takes away what a cell that has failed did not get to: later cells find that it is not there, and not undefined.
function undeclare(fresh) {
  for (const one of fresh) {
    if (!isExpected(one)) continue
    if (one.before) Object.defineProperty(globalThis, one.name, one.before)
    else delete globalThis[one.name]
  }
}
