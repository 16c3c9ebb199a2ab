// Makes of the source of a cell, in the kernel's language, what the main thread can run.
import { prepare, unprepared } from './cell.mjs'
import { completeness } from './syntax.mjs'
import { TypeScript } from './typescript.mjs'

// translatorOf returns the translator of a language. Types says what becomes of errors in types: "show" tells of them, "fail"
// keeps the cell from running, "off" looks for none.
//   translate(source)  resolves to what prepare returns; to problem beside it, {message, at, final}, if the source cannot be
//                      read; and to map, a source map, if lines have moved. Final tells that V8 has nothing to add.
//   check(source)      resolves to text about errors in types, empty if there are none; null if none are looked for
//   completeness(source)
//   patience           how long the end of a cell waits for what check promises, in milliseconds; where there are types
export function translatorOf(language, types) {
  return language === 'typescript' ? new TypeScript(prepared, types) : new JavaScript()
}

function prepared(source) {
  try {
    return prepare(source)
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error
    return { ...unprepared(source), problem: { message: error.message.replace(/ \(\d+:\d+\)$/, ''), at: error.pos } }
  }
}

class JavaScript {
  translate = async source => prepared(source)
  check = () => null
  completeness = completeness
}
