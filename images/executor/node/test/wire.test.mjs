import assert from 'node:assert/strict'
import test from 'node:test'
import { Wire } from '../front/wire.mjs'

const parent = { msg_id: '1', msg_type: 'execute_request' }
const buffers = frames => frames.map(frame => Buffer.from(frame))

test('a message that was packed can be read', () => {
  const wire = new Wire('key')
  const message = wire.parse(buffers(wire.pack(['id'], 'stream', parent, { text: 'é' })))
  assert.equal(message.header.msg_type, 'stream')
  assert.deepEqual(message.parent, parent)
  assert.deepEqual(message.content, { text: 'é' })
  assert.equal(String(message.identities[0]), 'id')
})

test('what is not signed with the key is refused', () => {
  const frames = buffers(new Wire('other').pack([], 'stream', parent, {}))
  assert.throws(() => new Wire('key').parse(frames), /signature/)
  assert.doesNotThrow(() => new Wire('other').parse(frames))
})

test('what is no message is refused', () => {
  const wire = new Wire('')
  for (const frames of [[], ['a'], ['<IDS|MSG>', '', '{}'], ['<IDS|MSG>', '', '{}', '{}', '{}', '{}'], ['<IDS|MSG>', '', '{', '{}', '{}', '{}']]) {
    assert.throws(() => wire.parse(buffers(frames)))
  }
})
