// A Jupyter kernel for JavaScript and TypeScript: node kernel.mjs [options] <connection file>
//
//   --language javascript|typescript
//   --types show|fail|off   what is wrong with the types of a cell is told and stops nothing, or keeps it from running, or is not
//                           looked for
//   --patience N            how long the end of a cell waits for the check of its types, in milliseconds; it goes on meanwhile.
//                           Without this, 5000, and not at all while the checker itself still starts
//
// It is two threads. This one, the main thread, runs the user's code (user/), which so has all that Node has. The other
// speaks Jupyter (front/), and answers while this one is busy.
import { parseArgs } from 'node:util'
import { MessageChannel, Worker } from 'node:worker_threads'
import { SLOTS } from './shared.mjs'
import { fetchThroughProxy } from './user/network.mjs'
import { Runner } from './user/runner.mjs'

const { values, positionals } = parseArgs({
  options: { language: { type: 'string', default: 'javascript' }, types: { type: 'string', default: 'show' }, patience: { type: 'string' } },
  allowPositionals: true,
})
const [connectionFile] = positionals
if (!connectionFile || !['javascript', 'typescript'].includes(values.language) || !['show', 'fail', 'off'].includes(values.types)) {
  console.error('usage: node kernel.mjs [--language javascript|typescript] [--types show|fail|off] [--patience N] <connection file>')
  process.exit(2)
}

await fetchThroughProxy()
const shared = new SharedArrayBuffer(4 * SLOTS)
const { port1: answers, port2: answersEnd } = new MessageChannel()
const front = new Worker(new URL('./front/front.mjs', import.meta.url), {
  workerData: { connectionFile, ...values, shared, answers: answersEnd }, transferList: [answersEnd],
  execArgv: [], env: process.env, stdout: true,
})
const exit = process.reallyExit.bind(process)
front.on('error', error => {
  process._rawDebug(error.stack)
  exit(1)
})
front.on('exit', () => exit(0))
new Runner({ front, answers, counters: new Int32Array(shared) }).start()
