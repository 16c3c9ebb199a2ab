// Programs that inherit standard output and error get sockets in their place, which the front reads: so what they print is
// the cell's, at once, also while user code waits for their end and does nothing else.
import childProcess from 'node:child_process'
import { syncBuiltinESMExports } from 'node:module'
import { connect } from 'node:net'
import { Promise, WeakSet, process } from './intrinsics.mjs'

// seen holds the errors of programs whose standard error Node has printed and put into their messages, too.
export const seen = new WeakSet()

// installPrograms connects to the front, which listens at path, and resolves when that has been done.
//   begun()  is called when a program gets the sockets
export async function installPrograms({ path, begun }) {
  const descriptors = [null, await connected(path, 'stdout'), await connected(path, 'stderr')]
  const replaced = options => {
    const stdio = substituted(options?.stdio, descriptors)
    if (!stdio) return options
    begun()
    return { ...options, stdio }
  }
  const { prototype } = childProcess.ChildProcess
  const { spawn } = prototype
  prototype.spawn = function (options) {
    return spawn.call(this, replaced(options))
  }
  for (const name of ['spawnSync', 'execFileSync', 'execSync']) {
    const run = childProcess[name]
    const wrapped = (...args) => {
      if (args.some(arg => arg?.stdio)) return run(...args.map(arg => arg?.stdio ? replaced(arg) : arg))
      try {
        return run(...args)
      } catch (error) {
        seen.add(error)
        throw error
      }
    }
    childProcess[name] = { [name]: wrapped }[name]
  }
  syncBuiltinESMExports()
}

// connected returns the descriptor of a socket, whose first line says which stream it is.
function connected(path, name) {
  return new Promise((resolve, reject) => {
    const socket = connect(path).once('error', reject).once('connect', () => {
      socket.write(name + '\n', () => resolve(socket._handle.fd))
      socket.unref()
    })
  })
}

// substituted returns what a program is to have as its streams, null if it inherits neither output nor error.
function substituted(stdio, descriptors) {
  if (!stdio) return null
  const list = typeof stdio === 'string' ? [stdio, stdio, stdio] : [...stdio]
  const streams = { 1: descriptors[1], 2: descriptors[2] }
  const changed = list.map((value, index) => {
    if (value === 'inherit') return streams[index] ?? value
    if (value === process.stdout) return streams[1]
    if (value === process.stderr) return streams[2]
    return typeof value === 'number' ? streams[value] ?? value : value
  })
  return changed.some((value, index) => value !== list[index]) ? changed : null
}
