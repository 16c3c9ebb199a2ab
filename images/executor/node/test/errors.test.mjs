import assert from 'node:assert/strict'
import test from 'node:test'
import vm from 'node:vm'
import { unprepared } from '../front/cell.mjs'
import { Errors } from '../user/errors.mjs'

// thrown is what describe says of what a cell throws.
function thrown(source) {
  const errors = new Errors()
  errors.remember('cell-7', source)
  try {
    new vm.Script(source, { filename: 'cell-7' }).runInThisContext()
  } catch (error) {
    return errors.describe(error)
  }
}

test('frames have their lines, the innermost last', () => {
  const { ename, evalue, traceback } = thrown('function f() {\n  throw new TypeError("no")\n}\nf()')
  assert.deepEqual([ename, evalue], ['TypeError', 'no'])
  assert.deepEqual(traceback, ['Cell In[7], line 4\n----> 4 f()', 'Cell In[7], line 2, in f\n----> 2   throw new TypeError("no")', 'TypeError: no'])
})

test('frames that repeat are counted', () => {
  const { traceback } = thrown('const g = n => n === 0 ? null.x : g(n - 1)\ng(20)')
  assert.equal(traceback.length, 4)
  assert.equal(traceback[2], '    [... 20 more frames like this one ...]')
})

test('a line and the function in it that has no name are one place', () => {
  const once = thrown('[1].map(n => { throw new Error("x") })').traceback
  assert.deepEqual(once.map(frame => frame.split('\n')[0]), ['Cell In[7], line 1', 'Error: x'])
  const twice = thrown('const h = n => n === 0 ? null.x : h(n - 1)\nh(1)').traceback
  assert.deepEqual(twice.map(frame => frame.split('\n')[0]).slice(0, 3), ['Cell In[7], line 2', 'Cell In[7], line 1, in h', 'Cell In[7], line 1, in h'])
})

test('what led to an error comes before it', () => {
  const { traceback } = thrown('throw new Error("b", { cause: new RangeError("a") })')
  assert.deepEqual(traceback.filter(line => !line.startsWith('Cell')), ['RangeError: a', 'The above exception was the direct cause of the following exception:', 'Error: b'])
})

test('a class that has no name of its own gives the error its', () => {
  assert.equal(thrown('class Mine extends Error {}\nthrow new Mine("x")').ename, 'Mine')
})

test('what is no error, and what cannot be described', () => {
  assert.deepEqual(thrown('throw { a: 1 }'), { ename: 'Uncaught', evalue: '{ a: 1 }', traceback: ['Uncaught { a: 1 }'] })
  assert.equal(thrown('throw Object.defineProperty(new Error("x"), "name", { get() { throw 1 } })').ename, 'Error')
})

test('stacks that code prints do not have the kernel in them', () => {
  assert.equal(thrown('throw new Error(new Error("s").stack)').evalue, 'Error: s\n    at cell-7:1:17')
})

test('who asked for a module is not said of a cell', () => {
  const { evalue, traceback } = thrown('throw new Error("Cannot find module \'x\'\\nRequire stack:\\n- /workspace/cell.js")')
  assert.deepEqual([evalue, traceback.at(-1)], ["Cannot find module 'x'", "Error: Cannot find module 'x'"])
})

test('a cell that ends too early is told by its own last line', () => {
  const told = { '[1,2': 'Unexpected end of input', 'const {a} =\n': 'Unexpected end of input', 'function f() {\n  return 1': 'Unexpected end of input' }
  for (const [source, message] of Object.entries(told)) {
    const errors = new Errors(), lines = source.trimEnd().split('\n'), last = lines.at(-1)
    errors.remember('cell-7', source)
    const { code, shift } = unprepared(source)
    try {
      new vm.Script(code, { filename: 'cell-7', columnOffset: -shift })
      assert.fail(source)
    } catch (error) {
      const { evalue, traceback } = errors.describe(error, { message: 'Unexpected token', at: source.length, shift, file: 'cell-7' })
      assert.deepEqual([evalue, traceback[0]], [message, `Cell In[7], line ${lines.length}\n    ${last}\n    ${' '.repeat(last.length)}^`], source)
    }
  }
})
