// Makes of a cell what V8 can run as a script, so that what it declares stays for the cells after it:
//
//   - let, const and class at the top become properties of the global object, like var and function. So a later cell may
//     declare the same name again, and in another way.
//   - A cell that awaits at its top, or imports, becomes an async function. Its functions are taken out of it and become a
//     script of their own, which is run first: they belong to the session, not to one run of one cell.
//   - import becomes import(), and export goes.
//
// Nothing moves to another line, so that errors have the lines of the source. (V8's own REPL mode, for developers' tools, does
// not let a cell declare with const what another has declared with let, and on Node 22 it ends the process when what a cell
// awaits is garbage.)
import { bound, parse, walk, walkScope } from './syntax.mjs'

// prepare returns
//   code       the script. Of an async cell its value is a function to call with the import function.
//   functions  the script to run before it, or null
//   names      what it declares
//   shows      whether its value, that of its last statement, is for showing
//   shift      how many characters have come before its first line
//   async      whether the script's value is that function
// It throws acorn's SyntaxError.
export function prepare(source) {
  const program = parse(source)
  const cell = new Cell(source, program)
  return isAsync(program) ? cell.asFunction() : cell.asScript()
}

// source as it is, for a cell that acorn cannot read: V8 knows better what is wrong with it, or is newer and can.
export function unprepared(source) {
  return { code: `(async () => {${source}\n})`, functions: null, names: [], shows: false, shift: '(async () => {'.length, async: true }
}

function isAsync(program) {
  let found = false
  walkScope(program, node => {
    found ||= node.type === 'AwaitExpression' || node.type === 'ForOfStatement' && node.await || node.type === 'ImportDeclaration' ||
      node.type === 'VariableDeclaration' && /using/.test(node.kind) ||
      (node.type === 'ExportAllDeclaration' || node.type === 'ExportNamedDeclaration') && node.source
    return !found
  })
  return found
}

class Cell {
  #source
  #program
  #edits = []
  #names = new Set()
  #imports = []

  constructor(source, program) {
    this.#source = source
    this.#program = program
    if (source.startsWith('#!')) this.#replace(0, 2, '//')
    this.#meta()
  }

  asScript() {
    for (const statement of this.#statements()) {
      if (statement.type === 'VariableDeclaration') this.#declareVar(statement)
      if (statement.type === 'ClassDeclaration') this.#declareClass(statement, 'var ')
      if (statement.type === 'FunctionDeclaration') this.#names.add(statement.id.name)
    }
    walkScope(this.#program, node => { if (node.type === 'VariableDeclaration' && node.kind === 'var') this.#bind(node) })
    // A value that is an object in braces needs parentheses.
    const literal = this.#program.body[0]?.start < 0
    const [before, after] = literal ? ['(', '\n)'] : ['', '']
    return { code: before + this.#edited() + after, functions: null, names: [...this.#names], shows: this.#shows(), shift: before.length, async: false }
  }

  asFunction() {
    const functions = []
    for (const statement of this.#statements()) {
      if (statement.type === 'VariableDeclaration' && !/using/.test(statement.kind)) this.#assign(statement)
      if (statement.type === 'ClassDeclaration') this.#declareClass(statement, '')
      if (statement.type === 'FunctionDeclaration') {
        functions.push(statement)
        this.#names.add(statement.id.name)
      }
    }
    this.#nestedVars()
    const last = this.#last()
    if (last?.type === 'ExpressionStatement') this.#return(last)
    const apart = this.#onlyFunctions(functions)
    for (const { start, end } of functions) this.#blank(start, end)
    const before = `(async ($import) => {${this.#imports.join('')}`
    return { code: `${before}${this.#edited()}\n})`, functions: apart, names: [...this.#names], shows: this.#shows(), shift: before.length, async: true }
  }

  // statements are those at the top, without the exports that some of them are in.
  *#statements() {
    for (const statement of this.#program.body) {
      switch (statement.type) {
        case 'ImportDeclaration':
          this.#import(statement)
          break
        case 'ExportNamedDeclaration':
        case 'ExportDefaultDeclaration': {
          const inner = statement.declaration
          if (statement.source) this.#imports.push(`await $import(${statement.source.raw});`)
          if (inner && !inner.id && inner.type !== 'VariableDeclaration') {
            this.#exportedValue(statement)
            break
          }
          this.#blank(statement.start, inner ? inner.start : statement.end)
          if (inner) yield inner
          break
        }
        case 'ExportAllDeclaration':
          this.#blank(statement.start, statement.end)
          this.#imports.push(`await $import(${statement.source.raw});`)
          break
        default:
          yield statement
      }
    }
  }

  // last is the last statement that does something. A namespace of TypeScript has a var behind all others.
  #last() {
    return this.#program.body.findLast(({ type, kind, declarations }) =>
      type !== 'EmptyStatement' && type !== 'FunctionDeclaration' && !(kind === 'var' && declarations.every(({ init }) => !init)))
  }

  // shows tells whether the cell's value is for showing. That of a write is of no interest after what was written.
  #shows() {
    const last = this.#last()
    return last?.type === 'ExpressionStatement' && !/^process\.std(out|err)\.write\(/.test(this.#source.slice(last.start))
  }

  #bind(declaration) {
    for (const { id } of declaration.declarations) for (const name of bound(id)) this.#names.add(name)
  }

  // declareVar makes a declaration at the top one with var. A let without a value begins as undefined, each time; a var keeps what it has,
  // and is written too, so that the runner sees that the cell has got to it.
  #declareVar(node) {
    this.#bind(node)
    if (node.kind !== 'var') this.#replace(node.start, node.start + node.kind.length, 'var'.padEnd(node.kind.length))
    for (const { id, init } of node.declarations) if (!init) this.#replace(id.end, id.end, ` = ${initial(node, id)}${id.end === node.end ? ';' : ''}`)
  }

  #declareClass(node, keyword) {
    this.#names.add(node.id.name)
    this.#replace(node.start, node.start, `${keyword}${node.id.name} = `)
    this.#replace(node.end, node.end, ';')
  }

  // assign makes assignments of a declaration, to what is declared outside of the function.
  #assign(node) {
    this.#bind(node)
    this.#replace(node.start, node.start + node.kind.length, 'void (')
    for (const { start, end, id, init } of node.declarations) {
      if (init) {
        this.#replace(start, start, '(')
        this.#replace(end, end, ')')
      } else this.#replace(id.start, id.end, `(${id.name} = ${initial(node, id)})`)
    }
    const ends = this.#source[node.end - 1] === ';'
    this.#replace(ends ? node.end - 1 : node.end, node.end, ');')
  }

  // nestedVars makes assignments of the var declarations in blocks and loops.
  #nestedVars() {
    const top = new Set(this.#program.body)
    const heads = new Set()
    walkScope(this.#program, node => {
      if (/^For(Of|In)?Statement$/.test(node.type)) heads.add(node.init ?? node.left)
      if (node.type !== 'VariableDeclaration' || node.kind !== 'var' || top.has(node) || isExported(this.#program, node)) return
      if (!heads.has(node)) return this.#assign(node)
      this.#bind(node)
      this.#replace(node.start, node.start + 3, '')
    })
  }

  // import makes a call of an import, before anything else: imports come first wherever they are.
  #import(node) {
    this.#blank(node.start, node.end)
    const wanted = []
    for (const { type, imported, local } of node.specifiers) {
      this.#names.add(local.name)
      const name = type === 'ImportDefaultSpecifier' ? 'default' : type === 'ImportNamespaceSpecifier' ? '*' : imported.name ?? imported.value
      wanted.push([name, local.name])
    }
    const attributes = (node.attributes ?? []).map(({ key, value }) => [key.name ?? key.value, value.value])
    const options = attributes.length > 0 ? `, ${JSON.stringify(Object.fromEntries(attributes))}` : ''
    const call = `await $import(${JSON.stringify(node.source.value)}, ${JSON.stringify(wanted.map(([name]) => name))}${options});`
    this.#imports.push(wanted.length > 0 ? `[${wanted.map(([, local]) => local)}] = ${call}` : call)
  }

  // meta gives import.meta, which scripts do not have, another name of the same length.
  #meta() {
    if (!this.#source.includes('import')) return
    walk(this.#program, node => {
      if (node.type === 'MetaProperty' && node.meta.name === 'import') this.#replace(node.start, node.end, 'module.meta'.padEnd(node.end - node.start))
    })
  }

  // exportedValue leaves the value of an export default, as a value: alone, braces would be a block.
  #exportedValue({ start, end }) {
    const [words] = /^export\b[^]*?\bdefault\b/.exec(this.#source.slice(start, end))
    this.#replace(start, start + words.length, `0,${blanked(words).slice(2)}`)
  }

  // return makes a statement the function's value. A literal in braces has none of the parentheses that it was read with.
  #return({ start, end, expression }) {
    if (start < 0) ({ start, end } = expression)
    else if (this.#source[end - 1] === ';') end--
    this.#replace(start, start, 'return { value: (')
    this.#replace(end, end, ') }')
  }

  #onlyFunctions(functions) {
    if (functions.length === 0) return null
    let text = '', at = 0
    for (const { start, end } of functions) {
      text += blanked(this.#source.slice(at, start)) + edited(this.#source, this.#edits, start, end)
      at = end
    }
    return text
  }

  #replace(start, end, text) {
    this.#edits.push({ start, end, text })
  }

  #blank(start, end) {
    this.#edits = this.#edits.filter(edit => edit.end <= start || edit.start >= end)
    this.#replace(start, end, blanked(this.#source.slice(start, end)))
  }

  #edited() {
    return edited(this.#source, this.#edits, 0, this.#source.length)
  }
}

// initial is what a declaration without a value gives a name.
function initial({ kind }, { name }) {
  return kind === 'var' ? name : 'undefined'
}

function isExported(program, node) {
  return program.body.some(statement => statement.declaration === node)
}

function blanked(text) {
  return text.replace(/[^\r\n\u2028\u2029]/g, ' ')
}

// edited returns a part of the source with the edits that lie in it. Of several at one place the first made comes first.
function edited(source, edits, from, to) {
  let text = '', at = from
  for (const edit of edits.filter(edit => edit.start >= from && edit.end <= to).sort((a, b) => a.start - b.start || a.end - b.end)) {
    text += source.slice(at, edit.start) + edit.text
    at = edit.end
  }
  return text + source.slice(at, to)
}
