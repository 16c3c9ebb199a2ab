import assert from 'node:assert/strict'
import test from 'node:test'
import vm from 'node:vm'
import { prepare } from '../front/cell.mjs'
import { completeness } from '../front/syntax.mjs'

// run runs cells one after the other in one realm, and returns what the last of them shows.
async function run(...sources) {
  const context = vm.createContext({ console, process, module: { meta: { url: 'file:///cell.js' } } })
  const load = async (name, wanted) => wanted.map(part => part === '*' ? { name } : `${name}.${part}`)
  let shown
  for (const source of sources) {
    const { code, functions, names, shows, async } = prepare(source)
    for (const name of names) if (!(name in context)) context[name] = undefined
    if (functions) vm.runInContext(functions, context)
    let value = vm.runInContext(code, context)
    if (async) value = (await value(load))?.value
    shown = shows ? value : undefined
  }
  return JSON.parse(JSON.stringify(shown ?? null))
}

const cases = [
  ['what is declared stays', ['let a = 1, { b, c: [d = 4] } = { b: 2, c: [] }; const e = 5', '[a, b, d, e]'], [1, 2, 4, 5]],
  ['it stays after an await, too', ['let a = await 1, { b, c: [d = 4] } = { b: 2, c: [] }; const e = 5', '[a, b, d, e]'], [1, 2, 4, 5]],
  ['a name may be declared again in another way', ['const a = 1', 'let a = 2', 'function a() {}', 'class a {}', 'var a = await 6; a'], 6],
  ['a let without a value has none', ['let a = 1', 'let a\n(() => {})()\na === undefined'], true],
  ['after an await, too', ['let a = 1', 'let a; await 0\na === undefined'], true],
  ['a var without a value keeps its own', ['var a = 1', 'var a; await 0\na'], 1],
  ['one in a list and in a block, too', ['var a = 1, b = 2', 'var a, c = 3, b\nif (c) { var c }\n[a, b, c]', 'await 0; var a, b; if (c) { var c }\n[a, b, c]'], [1, 2, 3]],
  ['functions can be called before they come', ['const a = await f()\nasync function f() { return 3 }\na'], 3],
  ['functions of an awaiting cell see later ones of other cells', ['await 0\nfunction f() { return g() }\nfunction g() { return 1 }', 'function g() { return 2 }', 'f()'], 2],
  ['classes', ['class A { x = 1 }\nnew A().x'], 1],
  ['classes of an awaiting cell', ['await 0\nclass A { x = 1 }\n[1].length', 'new A().x'], 1],
  ['var in blocks and loops', ['await 0\nfor (var i = 0, j = 1; i < 3; i++) { var q = i }\nfor (var [k] of [[7]]);\nif (q) var z = 1; else z = 2', '[i, j, q, k, z]'], [3, 1, 2, 7, 1]],
  ['let in loops is the loop\'s', ['for (let i = 0; i < 3; i++);\ntypeof i'], 'undefined'],
  ['an object in braces is a value', ['{ a: 1, b: [2] }'], { a: 1, b: [2] }],
  ['one that awaits, too', ['{ a: await 1 }'], { a: 1 }],
  ['a block is none', ['{ let a = 1; a }'], null],
  ['a write shows nothing', ['process.stdout.write("")'], null],
  ['loops show nothing', ['for (const a of [1]) a'], null],
  ['the last value counts, functions behind it do not', ['f();\nfunction f() { return 4 }'], 4],
  ['parentheses around a last value', ['(await 1, 2);'], 2],
  ['a comment behind a last value', ['await 1 // one'], 1],
  ['imports', ['import a, { b as c, default as d } from "m"\nimport * as e from "n"', '[a, c, d, e.name]'], ['m.default', 'm.b', 'm.default', 'n']],
  ['imports come first wherever they are', ['const b = a\nimport { a } from "m"\nb'], 'm.a'],
  ['export goes', ['export const a = 1; export function f() { return a }\nexport default { f }\nexport { a as b }', 'f()'], 1],
  ['import.meta', ['import.meta.url'], 'file:///cell.js'],
  ['a hash-bang', ['#!/usr/bin/env node\n1'], 1],
]

for (const [name, sources, want] of cases) {
  test(name, async () => assert.deepEqual(await run(...sources), want))
}

test('lines stay where they are', () => {
  for (const source of ['import a from "m"\nexport const b = 1\nawait 0\nfunction f() {\n}\nb', 'let a\nclass B {\n}\na']) {
    const { code } = prepare(source)
    for (const [i, line] of source.split('\n').entries()) {
      const word = /\b(b|a|await|B)\b/.exec(line)?.[0]
      if (word) assert.match(code.split('\n')[i], new RegExp(`\\b${word}\\b`), `line ${i + 1} of ${code}`)
    }
  }
})

test('completeness', () => {
  const want = { '1 + 1': 'complete', '[1,': 'incomplete', 'if (a) {': 'incomplete', '`a': 'incomplete', 'a + ) 1': 'invalid', 'let = =': 'invalid' }
  for (const [source, state] of Object.entries(want)) assert.equal(completeness(source), state, source)
})
