import assert from 'node:assert/strict'
import test from 'node:test'
import { TypeScript } from '../front/typescript.mjs'

test('cells wait for the checker of types when it has started, and not before', async () => {
  const typescript = new TypeScript(source => ({ source }), 'show')
  try {
    assert.equal(typescript.patience, 0)
    const said = await typescript.check('let a: number = "x"') // is answered behind the message that it has started
    assert.match(said, /^Type errors; the cell has run all the same:\nline 1: TS2322: /)
    assert.equal(typescript.patience, 5000)
  } finally {
    await typescript.close()
  }
})

test('a checker that is off is not waited for', async () => {
  const typescript = new TypeScript(source => ({ source }), 'off')
  assert.equal(typescript.check('let a: number = "x"'), null)
  assert.equal(typescript.patience, 0)
  await typescript.close()
})
