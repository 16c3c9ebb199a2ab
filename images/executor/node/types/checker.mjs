// Checks the types of cells. Each cell is a file; what it declares at its top is exported, and the cells after it get it as
// declarations of their own, behind their last line.
import ts from 'typescript'
import { readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'

const HERE = dirname(fileURLToPath(import.meta.url))
const MOST = 10 // errors of one cell

const options = directory => ({
  target: ts.ScriptTarget.ESNext, module: ts.ModuleKind.ESNext, moduleResolution: ts.ModuleResolutionKind.Bundler, lib: ['lib.esnext.d.ts'],
  moduleDetection: ts.ModuleDetectionKind.Force, noEmit: true, allowJs: true, checkJs: false, allowImportingTsExtensions: true, resolveJsonModule: true,
  esModuleInterop: true, skipLibCheck: true, types: ['node'],
  typeRoots: [join(HERE, '..', 'node_modules', '@types'), join(directory, 'node_modules', '@types'), '/node_modules/@types'],
  // Cells are sketches: what they leave unsaid is no error, what contradicts is.
  strict: true, noImplicitAny: false, useUnknownInCatchVariables: false, strictPropertyInitialization: false,
})

const GLOBALS = readFileSync(join(HERE, 'globals.d.ts'), 'utf8')

export class Checker {
  #files = new Map() // texts of cells, by path
  #names = new Map() // where each name was declared last: {cell, kind}
  #service
  #current = [] // the files to check; the others come in as they are needed
  #directory = process.cwd()

  constructor() {
    const globals = this.#path('globals.d.ts')
    this.#files.set(globals, GLOBALS)
    this.#current = [globals]
    this.#service = ts.createLanguageService(this.#host(), ts.createDocumentRegistry())
  }

  warm() {
    this.#service.getProgram()?.getGlobalDiagnostics()
  }

  // check returns what is wrong with a cell's types: {at, line, code, message, text} each. The cell is one for those after it, if
  // nothing is wrong with its syntax.
  check(source) {
    const cell = `cell-${this.#files.size}`
    const path = this.#path(`${cell}.ts`)
    const declared = declarations(source)
    this.#files.set(path, `${source}\n;${this.#earlier(declared)}export { ${[...declared].filter(([, { exported }]) => !exported).map(([name]) => name)} }`)
    this.#current = [this.#current[0], path]
    const wrong = [...this.#service.getSyntacticDiagnostics(path), ...this.#service.getSemanticDiagnostics(path)]
    for (const [name, { kind }] of declared) this.#names.set(name, { cell, kind })
    const lines = source.split('\n')
    return wrong.filter(({ start, category }) => category === ts.DiagnosticCategory.Error && start < source.length).slice(0, MOST).map(({ start, code, messageText }) => {
      const line = source.slice(0, start).split('\n').length
      return { at: start, line, code, message: ts.flattenDiagnosticMessageText(messageText, '\n  '), text: lines[line - 1] }
    })
  }

  // earlier declares what earlier cells have declared and this one does not.
  #earlier(declared) {
    let text = ''
    for (const [name, { cell, kind }] of this.#names) {
      if (declared.has(name)) continue
      text += kind === 'other' ? `import { ${name} } from './${cell}';` : `declare ${kind} ${name}: typeof import('./${cell}').${name};`
    }
    return text
  }

  #path(name) {
    return join(this.#directory, name)
  }

  #host() {
    const read = path => this.#files.get(path) ?? ts.sys.readFile(path)
    return {
      getCompilationSettings: () => options(this.#directory),
      getScriptFileNames: () => this.#current,
      // Files on the disk may change between two cells.
      getScriptVersion: path => this.#files.has(path) ? '1' : String(ts.sys.getModifiedTime(path)?.getTime() ?? 0),
      getScriptSnapshot: path => {
        const text = read(path)
        return text === undefined ? undefined : ts.ScriptSnapshot.fromString(text)
      },
      getCurrentDirectory: () => this.#directory,
      getDefaultLibFileName: settings => ts.getDefaultLibFilePath(settings),
      fileExists: path => this.#files.has(path) || ts.sys.fileExists(path),
      readFile: read, readDirectory: ts.sys.readDirectory, directoryExists: ts.sys.directoryExists, getDirectories: ts.sys.getDirectories,
      realpath: ts.sys.realpath,
    }
  }
}

// declarations are the names that a cell declares at its top: {kind, exported} each. Kind is "let" or "const" for what can be
// declared by its type alone.
function declarations(source) {
  const found = new Map()
  const file = ts.createSourceFile('cell.ts', source, ts.ScriptTarget.ESNext)
  for (const statement of file.statements) {
    const exported = (ts.canHaveModifiers(statement) ? ts.getModifiers(statement) : [])?.some(({ kind }) => kind === ts.SyntaxKind.ExportKeyword) ?? false
    if (ts.isVariableStatement(statement)) {
      const kind = statement.declarationList.flags & ts.NodeFlags.Const ? 'const' : 'let'
      for (const { name } of statement.declarationList.declarations) for (const one of bound(name)) found.set(one, { kind, exported })
    } else if (ts.isImportDeclaration(statement)) {
      for (const name of imported(statement.importClause)) found.set(name, { kind: 'other', exported: false })
    } else if (statement.name && ts.isIdentifier(statement.name)) found.set(statement.name.text, { kind: 'other', exported })
  }
  return found
}

function bound(name) {
  return ts.isIdentifier(name) ? [name.text] : name.elements.flatMap(element => element.name ? bound(element.name) : [])
}

function imported(clause) {
  const names = clause?.name ? [clause.name.text] : []
  const bindings = clause?.namedBindings
  if (!bindings) return names
  return [...names, ...ts.isNamespaceImport(bindings) ? [bindings.name.text] : bindings.elements.map(({ name }) => name.text)]
}
