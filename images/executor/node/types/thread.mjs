// The thread that checks the types of cells while they run: what the compiler needs for that takes its time.
import { parentPort } from 'node:worker_threads'
import { Checker } from './checker.mjs'

const checker = new Checker()

parentPort.on('message', ({ id, source }) => {
  let wrong = []
  try {
    wrong = checker.check(source)
  } catch { // of types alone nobody's work shall fail
  }
  parentPort.postMessage({ id, wrong })
})
// The first check reads all that is known of the language and of Node. It can as well do so before somebody waits for it.
checker.warm()
parentPort.postMessage({ ready: true })
