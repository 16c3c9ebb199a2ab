// The thread that speaks Jupyter. It answers on all channels whatever the user's code does, which has the main thread, and
// hands it one request at a time.
import { readFileSync, writeSync } from 'node:fs'
import { parentPort, workerData } from 'node:worker_threads'
import { ANSWERED, UNSENT } from '../shared.mjs'
import { interrupt } from './interrupt.mjs'
import { languageOf } from './language.mjs'
import { Programs } from './programs.mjs'
import { Sockets } from './sockets.mjs'
import { Text } from './text.mjs'
import { translatorOf } from './translate.mjs'
import { VERSION, Wire } from './wire.mjs'

// Requests whose headers are remembered, because code that they started may still print.
const REMEMBERED = 10_000

const { connectionFile, language, types, patience, shared, answers } = workerData
const connection = JSON.parse(readFileSync(connectionFile, 'utf8'))
const wire = new Wire(connection.key)
const sockets = new Sockets()
const counters = new Int32Array(shared)
const about = languageOf(language)
const translator = translatorOf(language, types)

const parents = new Map() // headers of requests, by the number of the cell that each was
let cells = 0
let executions = 0
let queue = [] // requests on shell that wait
let running = null // the one that is being dealt with: {message, cell, kind, ...}
let lastRun = 0 // the number of the cell that ran last
let asking = null // the cell that waits for an answer on stdin

const text = new Text((cell, name, piece) => publish(cell, 'stream', { name, text: piece }, () => {
  Atomics.sub(counters, UNSENT, piece.length)
  Atomics.notify(counters, UNSENT)
}))

// What programs print is the running cell's, or the last one's.
const programs = new Programs((name, piece) => say(name, piece, running?.cell ?? lastRun))

function say(name, piece, cell) {
  Atomics.add(counters, UNSENT, piece.length)
  text.add(cell, name, piece)
}

function publish(cell, type, content, sent, metadata) {
  sockets.send('iopub', wire.pack([type], type, parents.get(cell), content, metadata), sent)
}

function reply(channel, message, content) {
  const type = message.header.msg_type.replace(/_request$/, '_reply')
  sockets.send(channel, wire.pack(message.identities, type, message.header, content))
}

function status(cell, state) {
  publish(cell, 'status', { execution_state: state })
}

// number gives a request a number, by which its output finds its way.
function number(message) {
  parents.set(++cells, message.header)
  parents.delete(cells - REMEMBERED)
  return cells
}

const info = () => ({
  status: 'ok', protocol_version: VERSION, implementation: 'cellblock-node', implementation_version: process.version,
  banner: `Node.js ${process.version}`, language_info: about.info, help_links: [{ text: 'Node.js', url: 'https://nodejs.org/api/' }],
  supported_features: [],
})

// Requests that need nothing of the user's code.
const plain = {
  kernel_info_request: info,
  connect_request: () => connection,
  comm_info_request: () => ({ status: 'ok', comms: {} }),
  history_request: () => ({ status: 'ok', history: [] }),
}

// Requests that take their time, most of them with the main thread.
const deep = {
  is_complete_request: completeness,
  execute_request: execute,
  complete_request: (request, { code = '', cursor_pos: cursor }) => ask(request, { op: 'complete', code, cursor: units(code, cursor) }),
  inspect_request: (request, { code = '', cursor_pos: cursor, detail_level: detail = 0 }) =>
    ask(request, { op: 'inspect', code, cursor: units(code, cursor), detail }),
}

// units turns a position in code points, which Jupyter counts, to one in JavaScript's units.
function units(code, cursor) {
  return [...code].slice(0, cursor ?? code.length).join('').length
}

function take(frames) {
  queue.push(wire.parse(frames))
  next()
}

// next deals with requests until one of them needs the main thread.
function next() {
  while (!running && queue.length > 0) {
    const message = queue.shift()
    const type = message.header.msg_type
    const cell = number(message)
    if (deep[type]) {
      running = { message, cell }
      status(cell, 'busy')
      deep[type](running, message.content)
    } else answerPlainly('shell', message, cell)
  }
}

function answerPlainly(channel, message, cell) {
  status(cell, 'busy')
  const answer = plain[message.header.msg_type]
  if (answer) reply(channel, message, answer(message.content))
  status(cell, 'idle')
}

// ask hands a request to the main thread.
function ask(request, question) {
  parentPort.postMessage({ ...question, cell: request.cell })
}

async function completeness(request, { code = '' }) {
  const status = await translator.completeness(code)
  finish({ content: status === 'incomplete' ? { status, indent: '' } : { status } })
}

async function execute(request, content) {
  const { code = '', silent = false, store_history: store = !silent } = content
  request.silent = silent
  request.count = executions + 1
  if (!silent && store) executions++
  if (!silent) publish(request.cell, 'execute_input', { code, execution_count: request.count })
  const translated = await translator.translate(code)
  request.checked = silent || translated.problem ? null : translator.check(code)
  ask(request, {
    op: 'execute', source: code, silent, count: request.count, input: Boolean(content.allow_stdin),
    expressions: content.user_expressions ?? {}, ...translated,
  })
}

// toldOfTypes resolves when what is wrong with a cell's types has been told, or takes so long that it comes later.
function toldOfTypes(request) {
  const told = request.checked.then(wrong => wrong && say('stderr', wrong, request.cell))
  let timer
  const enough = new Promise(resolve => {
    timer = setTimeout(resolve, Number(patience ?? translator.patience))
    request.hurry = resolve
  })
  return Promise.race([told, enough]).finally(() => clearTimeout(timer))
}

// finish ends the request that the main thread has dealt with.
function finish({ content, programs: printing }) {
  const request = running
  lastRun = request.cell
  if (printing) programs.drain()
  text.flush()
  reply('shell', request.message, content.execution_count === null ? { ...content, execution_count: request.count } : content)
  if (content.status === 'error' && request.message.content.stop_on_error !== false) abort()
  status(request.cell, 'idle')
  running = asking = null
  next()
}

// abort answers the executions that wait, of which the one before has failed.
function abort() {
  const waiting = queue
  queue = []
  for (const message of waiting) {
    if (message.header.msg_type !== 'execute_request') {
      queue.push(message)
      continue
    }
    const cell = number(message)
    status(cell, 'busy')
    reply('shell', message, { status: 'aborted', execution_count: executions })
    status(cell, 'idle')
  }
}

// What the main thread says.
const heard = {
  text: ({ cell, name, text: piece }) => text.add(cell, name, piece),
  publish: ({ cell, type, content, metadata }) => {
    text.flush()
    publish(cell, type, content, undefined, metadata)
  },
  input: ({ cell, prompt, password }) => {
    if (cell !== running?.cell) return answer('\x04the cell has ended')
    text.flush()
    asking = cell
    sockets.send('stdin', wire.pack(running.message.identities, 'input_request', running.message.header, { prompt, password }))
  },
  done: async message => {
    if (message.cell !== running?.cell) return
    if (running.checked) await toldOfTypes(running)
    finish(message)
  },
  prepare: async ({ source }) => parentPort.postMessage({ op: 'prepared', prepared: await translator.translate(source) }),
  interrupt: () => void interruptRunning(),
}

// takeAnswer takes what somebody typed.
function takeAnswer(frames) {
  const { header, content } = wire.parse(frames)
  if (header.msg_type === 'input_reply' && asking !== null) answer(String(content.value ?? ''))
}

function answer(value) {
  asking = null
  answers.postMessage(value)
  Atomics.store(counters, ANSWERED, 1)
  Atomics.notify(counters, ANSWERED)
}

function interruptRunning() {
  running?.hurry?.()
  return running ? interrupt(running.cell) : null
}

function control(frames) {
  const message = wire.parse(frames)
  const cell = number(message)
  switch (message.header.msg_type) {
    case 'interrupt_request':
      status(cell, 'busy')
      void interruptRunning()
      reply('control', message, { status: 'ok' })
      return status(cell, 'idle')
    case 'shutdown_request':
      status(cell, 'busy')
      reply('control', message, { status: 'ok', restart: Boolean(message.content.restart) })
      status(cell, 'idle')
      return void shutDown()
    default:
      answerPlainly('control', message, cell)
  }
}

// shutDown ends this thread, and with it the process, when what was said is on its way and the main thread is free.
async function shutDown() {
  await sockets.flushed()
  await interruptRunning()
  sockets.close()
  process.exit()
}

// subscribed welcomes a new reader of IOPub, so that it knows that it misses nothing from now on (JEP 65).
function subscribed(frames) {
  const [flag, ...topic] = frames[0]
  if (flag === 1) sockets.send('iopub', wire.pack(['iopub_welcome'], 'iopub_welcome', {}, { subscription: Buffer.from(topic).toString() }))
}

// guarded keeps what one message does wrong from ending its channel.
function guarded(take) {
  return frames => {
    try {
      take(frames)
    } catch (error) {
      writeSync(2, `a message that cannot be dealt with: ${error.message}\n`)
    }
  }
}

parentPort.on('message', message => heard[message.op](message))
parentPort.postMessage({ op: 'begin', path: await programs.listen() })
await new Promise(resolve => { heard.begun = resolve })
await sockets.bind(connection)
void sockets.beat()
for (const [name, serve] of Object.entries({ iopub: subscribed, control, stdin: takeAnswer, shell: take })) void sockets.serve(name, guarded(serve))
