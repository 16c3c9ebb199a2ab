// Describes errors as Jupyter shows them: name, value, and a traceback that ends with where the error was thrown and has, for
// each frame, the line of the source. Frames of the kernel's own are left out.
import { readFileSync, statSync } from 'node:fs'
import { SourceMap } from 'node:module'
import { basename } from 'node:path'
import { fileURLToPath } from 'node:url'
import { inspect } from 'node:util'
import { isNativeError, isProxy } from 'node:util/types'
import { RUN } from '../shared.mjs'
import { seen } from './programs.mjs'
import { Array, Error, JSON, Map, Math, Number, String, SyntaxError, URL } from './intrinsics.mjs'

const OWN = new URL('..', import.meta.url).href
const NAME = 'cell.js' // of what imports on behalf of cells
const CELLS = /\nRequire stack:\n- \S*\/cell\.js$/ // who asked for a module that is not there: a cell
const FRAMES = 50
const DEEP = 5 // errors that led to an error
const MEMBERS = 10 // errors of one AggregateError
const LARGE = 4 << 20 // bytes of a file that is not read for a line of it
const LINE = 300 // characters
const REMEMBERED = 2000 // cells

// frameAt reads one line of V8's stack: "    at async f (file:///x.js:3:5)", "    at cell-2:1:7".
const frameAt = /^ {4}at (?:async )?(?:(.+?) \()?((?:file:\/\/|node:|\/|cell-|saved-)[^()]*?):(\d+):(\d+)\)?$/
// compiledAt reads the first line of the stack of a SyntaxError that V8 has found.
const compiledAt = /^(cell-\d+|\/.+|file:.+):(\d+)$/
const cellName = /^cell-(\d+)$/

Error.stackTraceLimit = FRAMES

const maps = new Map() // source maps, by the names of what they are of: text, or read

// mapped gives the places in a line of a stack the numbers of the source.
function mapped(line) {
  if (maps.size === 0) return line
  return line.replace(/([^\s()]+):(\d+):(\d+)/, (place, name, row, column) => {
    const entry = mapOf(name)?.findEntry(row - 1, column - 1)
    return entry?.originalLine === undefined ? place : `${name}:${entry.originalLine + 1}:${entry.originalColumn + 1}`
  })
}

function mapOf(name) {
  const map = maps.get(name)
  if (typeof map === 'string') maps.set(name, new SourceMap(JSON.parse(map)))
  return maps.get(name)
}

// Stacks that the user's code prints do not have the kernel's frames either.
Error.prepareStackTrace = (error, sites) => {
  const frames = sites.map(site => ({ site, file: site.getFileName() ?? '' })).filter(({ file }) => !own(file))
  while (frames.length > 0 && frames.at(-1).file.startsWith('node:')) frames.pop() // what has called the kernel
  return header(error) + frames.map(({ site }) => mapped(`\n    at ${site}`)).join('')
}

function own(file) {
  return file.startsWith(OWN) || file === 'node:vm' || file === 'node:async_hooks' || file.startsWith('node:internal/async_') || basename(file) === NAME
}

function header(error) {
  try {
    return Error.prototype.toString.call(error)
  } catch {
    return '<error>'
  }
}

export class Errors {
  #sources = new Map() // of cells, by their names

  // remember keeps the source of a cell or script, for the lines in tracebacks. Map leads from what is run to the source.
  remember(name, source, map) {
    this.#sources.delete(name)
    this.#sources.set(name, source)
    maps.delete(name)
    if (map) maps.set(name, map)
    if (this.#sources.size > REMEMBERED) this.#forget(this.#sources.keys().next().value)
  }

  #forget(name) {
    this.#sources.delete(name)
    maps.delete(name)
  }

  // describe returns an error's content for messages. Problem is {message, at, shift}: what the reader of the cell's source had
  // to say, if it could not read it, and how much longer the first line is for V8.
  describe(error, problem) {
    try {
      return this.#describe(error, problem)
    } catch {
      return { ename: 'Error', evalue: 'an error that cannot be described', traceback: ['an error that cannot be described'] }
    }
  }

  #describe(error, problem) {
    if (!isError(error)) {
      const evalue = inspect(error)
      return { ename: 'Uncaught', evalue, traceback: [`Uncaught ${evalue}`] }
    }
    const ename = nameOf(error)
    if (problem?.final) return this.#unread(problem.message, problem.file, problem.at)
    const compiled = problem && error instanceof SyntaxError && compiledAt.exec(String(error.stack).split('\n')[0])
    if (compiled) return this.#unreadable(error, compiled, problem)
    return { ename, evalue: saidBy(error), traceback: this.#lines(error, DEEP) }
  }

  // unreadable describes what is wrong with a cell's source: V8 says it best, but it takes cells for scripts.
  #unreadable({ message, stack }, [, file, line], problem) {
    if (/\b(import|export|module)\b/.test(message)) return this.#unread(problem.message, file, problem.at)
    const source = this.#source(file)
    if (Number(line) > source.split('\n').length) { // what V8 stumbled over is what stands around the cell: the cell has ended too early
      return this.#unread(String(message).replace(/^Unexpected token '[})]'$/, 'Unexpected end of input'), file, source.trimEnd().length)
    }
    const row = Number(line), column = String(stack).split('\n')[2].search(/\^/) - (row === 1 ? problem.shift : 0)
    return this.#syntaxError(String(message), file, row, column)
  }

  // unread describes an error at a position in a source.
  #unread(message, file, at) {
    const before = this.#source(file).slice(0, at).split('\n')
    return this.#syntaxError(message, file, before.length, before.at(-1).length)
  }

  #syntaxError(evalue, file, row, column) {
    const text = this.#source(file).split('\n')[row - 1] ?? ''
    return { ename: 'SyntaxError', evalue, traceback: [`${this.#where(file, row)}\n    ${text}\n    ${' '.repeat(Math.max(column, 0))}^`, `SyntaxError: ${evalue}`] }
  }

  // lines are the elements of an error's traceback, with what led to it before it.
  #lines(error, deep) {
    const lines = []
    if (isError(error.cause) && deep > 0) {
      lines.push(...this.#lines(error.cause, deep - 1), 'The above exception was the direct cause of the following exception:')
    }
    lines.push(...this.#place(error), message(error))
    if (Array.isArray(error.errors) && deep > 0) {
      error.errors.slice(0, MEMBERS).forEach((one, i) => {
        lines.push(`Sub-exception ${i + 1} of ${error.errors.length}:`)
        lines.push(...isError(one) ? this.#lines(one, 0) : [inspect(one)])
      })
      if (error.errors.length > MEMBERS) lines.push(`… ${error.errors.length - MEMBERS} more sub-exceptions …`)
    }
    return lines
  }

  // place is where an error comes from: its frames, the outermost first, or the line that could not be compiled.
  #place(error) {
    const stack = String(error.stack ?? '').split('\n')
    const compiled = error instanceof SyntaxError && compiledAt.exec(stack[0])
    if (compiled) return [this.#broken(compiled[1], Number(compiled[2]), stack)]
    const frames = stack.map(line => frameAt.exec(line)).filter(Boolean).filter(([, , file]) => !file.startsWith('node:internal'))
    frames.reverse()
    while (frames[0]?.[2].startsWith('node:') || this.#runsScript(frames[0])) frames.shift() // what has called the user's code
    return collapsed(frames.map(([, name, file, line]) => this.#frame(name, file, Number(line))))
  }

  // runsScript tells whether a frame is that of the cell which the server makes to run a script.
  #runsScript(frame) {
    return frame && this.#line(frame[2], Number(frame[3])).startsWith(`await this['${RUN}'](`)
  }

  #broken(file, line, stack) {
    const caret = stack.findIndex((text, i) => i > 1 && /^\s*\^+$/.test(text))
    const shown = caret > 0 ? stack.slice(1, caret + 1) : [this.#line(file, line)]
    return [this.#where(file, line), ...shown.map(text => `    ${text}`)].join('\n')
  }

  #frame(name, file, line) {
    const source = this.#line(file, line)
    const where = this.#where(file, line) + (name ? `, in ${name}` : '')
    return source ? `${where}\n----> ${line} ${source}` : where
  }

  #where(file, line) {
    const cell = cellName.exec(file)
    if (cell) return `Cell In[${cell[1]}], line ${line}`
    return `File ${file.startsWith('file:') ? fileURLToPath(file) : file}:${line}`
  }

  #source(file) {
    return this.#sources.get(file) ?? contentOf(file)
  }

  // line is a line of a source, "" if that is not to be had.
  #line(file, number) {
    try {
      return (this.#source(file).split('\n')[number - 1] ?? '').trimEnd().slice(0, LINE)
    } catch {
      return ''
    }
  }
}

// collapsed counts frames that repeat, as those of a function that calls itself do. A line and the function in it that has no name,
// as a new Promise has one, are one place.
function collapsed(frames) {
  const kept = []
  for (let i = 0; i < frames.length;) {
    let end = i + 1
    while (frames[end] === frames[i]) end++
    kept.push(frames[i])
    if (end - i > 2) kept.push(`    [... ${end - i - 1} more frames like this one ...]`)
    else if (end - i === 2 && /^.*, in /.test(frames[i])) kept.push(frames[i])
    i = end
  }
  return kept
}

function contentOf(file) {
  if (file.startsWith('node:')) return ''
  const path = file.startsWith('file:') ? fileURLToPath(file) : file
  const { size } = statSync(path)
  return size > LARGE ? '' : readFileSync(path, 'utf8')
}

function isError(value) {
  return isNativeError(value) || value instanceof Error && !isProxy(value)
}

// nameOf is an error's name, or its class's where that has not been given another.
function nameOf(error) {
  const name = String(error.name || 'Error')
  const own = error.constructor?.name
  return name === 'Error' && own ? own : name
}

// saidBy is an error's message, without what only the kernel knows of, or the cell has shown already.
function saidBy(error) {
  const text = String(error.message ?? '').replace(CELLS, '')
  return seen.has(error) ? text.replace(`\n${error.stderr}`, () => '') : text
}

function message(error) {
  const text = saidBy(error)
  return text ? `${nameOf(error)}: ${text}` : nameOf(error)
}
