// Interrupts the user's code, whatever it does: V8 runs what an inspector asks for in the middle of an endless loop, a long
// match or a wait, and when the event loop is idle.
import { Session } from 'node:inspector'
import { readdirSync, readFileSync } from 'node:fs'
import { INTERRUPT } from '../shared.mjs'

// interrupt ends the cell with this number, if it runs or is about to. Programs that the kernel started and that share its
// process group get a SIGINT, as if somebody had pressed ^C in a terminal: code that waits for one hears of nothing else.
// It resolves when the user's code has been reached.
export function interrupt(cell) {
  const session = new Session()
  session.connectToMainThread()
  const reached = new Promise(resolve => {
    session.post('Runtime.evaluate', { expression: `this['${INTERRUPT}'](${cell})` }, resolve)
  })
  for (const pid of descendants(process.pid)) signal(pid)
  return reached.then(() => session.disconnect())
}

function signal(pid) {
  try {
    process.kill(pid, 'SIGINT')
  } catch { // it has ended
  }
}

// descendants are the processes below one that are in its process group.
function descendants(root) {
  const all = processes()
  const group = all.find(({ pid }) => pid === root)?.group
  const below = [root]
  for (const parent of below) below.push(...all.filter(process => process.parent === parent).map(({ pid }) => pid))
  return all.filter(({ pid, group: its }) => pid !== root && its === group && below.includes(pid)).map(({ pid }) => pid)
}

function processes() {
  let names = []
  try {
    names = readdirSync('/proc').filter(name => /^\d+$/.test(name))
  } catch { // there is no /proc
  }
  return names.flatMap(name => {
    try {
      const stat = readFileSync(`/proc/${name}/stat`, 'latin1')
      const [, parent, group] = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
      return [{ pid: Number(name), parent: Number(parent), group: Number(group) }]
    } catch {
      return []
    }
  })
}
