// What cells require and import is looked for from the working directory, as in a file that lies there; and then in the
// folders of NODE_PATH, also what is imported.
import { createRequire } from 'node:module'
import { existsSync } from 'node:fs'
import { delimiter, dirname, join, resolve } from 'node:path'
import { pathToFileURL } from 'node:url'
import vm from 'node:vm'
import { Error, Map, Object, String, SyntaxError, process } from './intrinsics.mjs'
import { followTypeScript, requireTypeScript } from './typescript.mjs'

const ours = createRequire(import.meta.url)
const loader = vm.constants.USE_MAIN_CONTEXT_DEFAULT_LOADER

export class Modules {
  #directory = null
  #place // the folder that code seems to be in
  #importers = []
  #imported = new Map() // what cells have imported, and how: {specifier, name, attributes}

  constructor() {
    // That the loader is experimental is for us to know.
    const warn = process.emitWarning
    process.emitWarning = (warning, ...rest) => String(warning).startsWith('vm.USE_MAIN_CONTEXT_DEFAULT_LOADER') || warn.call(process, warning, ...rest)
    requireTypeScript()
  }

  // follow makes the working directory, which a cell may have changed, the place to look from.
  follow() {
    const directory = process.cwd()
    if (directory !== this.#directory) this.beAt(join(directory, 'cell.js'))
    this.#directory = directory
  }

  // beAt makes a file the one that code seems to be in, until the next cell begins.
  beAt(file) {
    this.#directory = null
    const directory = this.#place = dirname(file)
    const require = createRequire(file)
    process.argv[1] = file // by which scripts find out whether they were called, or imported
    const module = { exports: {}, id: '.', filename: file, path: directory, children: [], paths: require.resolve.paths('x') ?? [], require }
    require.main = module
    module.meta = { url: pathToFileURL(file).href, filename: file, dirname: directory, resolve: name => pathToFileURL(require.resolve(name)).href }
    for (const [name, value] of Object.entries({ require, module, exports: module.exports, __dirname: directory, __filename: file })) {
      Object.defineProperty(globalThis, name, { value, writable: true, configurable: true, enumerable: false })
    }
    this.#importers = [file, ...nodePath()].map(importerAt)
  }

  // import returns what a cell's import statement wants of a module: "default", "*" for all of it, or a name. Lenient takes a
  // name that is not there for a type's, of which TypeScript leaves nothing.
  async import(specifier, wanted, attributes, lenient) {
    const module = await this.#load(specifier, attributes && { with: attributes })
    const place = /^\.\.?\//.test(specifier) ? resolve(this.#place, specifier) : specifier
    return wanted.map(name => {
      const part = partOf(module, name)
      if (!part && !lenient) throw new SyntaxError(`The requested module '${specifier}' does not provide an export named '${name}'`)
      if (part) this.#imported.set(part.value, { specifier: place, name, attributes })
      return part?.value
    })
  }

  // imported are the parts of modules that cells have imported, each with what again() finds it by.
  imported() {
    return this.#imported
  }

  // again is a part of a module, by how a cell has imported it, or by the file that was required.
  async again({ specifier, name, attributes, file, member }) {
    if (file === undefined) return (await this.import(specifier, [name], attributes))[0]
    const module = ours(file)
    if (member === undefined) return module
    if (!(member in Object(module))) throw new Error(`it is not in ${file}`)
    return module[member]
  }

  async #load(specifier, options) {
    followTypeScript(specifier)
    let first
    for (const load of this.#importers) {
      try {
        return await load(specifier, options)
      } catch (error) {
        first ??= error
        if (error.code !== 'ERR_MODULE_NOT_FOUND' || /^[./]/.test(specifier)) throw first
      }
    }
    throw first
  }
}

// partOf returns {value}, or undefined where a module has no such part.
function partOf(module, name) {
  if (name === '*') return { value: module }
  if (name in module) return { value: module[name] }
  // Of a CommonJS module Node does not know all names before it has run.
  if (module.default != null && name in Object(module.default)) return { value: module.default[name] }
}

// nodePath are files in the folders that modules of NODE_PATH can be imported from.
function nodePath() {
  return (process.env.NODE_PATH ?? '').split(delimiter).filter(dir => dir.endsWith('node_modules') && existsSync(dir)).map(dir => join(dirname(dir), 'cell.js'))
}

// importerAt returns import() as a script at this place has it.
function importerAt(filename) {
  return vm.runInThisContext('(specifier, options) => import(specifier, options)', { filename, importModuleDynamically: loader })
}
