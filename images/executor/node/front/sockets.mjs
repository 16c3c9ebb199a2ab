// The kernel's five ZMQ sockets (Jupyter messaging, "Introduction").
import * as zmq from 'zeromq'

// Messages that wait for a slow reader on IOPub, before the kernel waits for it, too.
const WAITING = 1000

// Outbox sends on one socket, one message after the other: a ZMQ socket takes no second one before it has the first.
class Outbox {
  #socket
  #queue = []
  #sending = false

  constructor(socket) {
    this.#socket = socket
  }

  // send queues frames. Sent is called when the socket has them.
  send(frames, sent) {
    this.#queue.push([frames, sent])
    if (!this.#sending) void this.#drain()
  }

  // sent resolves when the socket has all that was queued up to now.
  sent() {
    return this.#sending ? new Promise(resolve => this.#queue.push([null, resolve])) : Promise.resolve()
  }

  async #drain() {
    this.#sending = true
    while (this.#queue.length > 0) {
      const queue = this.#queue
      this.#queue = []
      for (const [frames, sent] of queue) {
        if (frames) await this.#socket.send(frames)
        sent?.()
      }
    }
    this.#sending = false
  }
}

export class Sockets {
  #sockets
  #outboxes = {}

  constructor() {
    // A full IOPub makes send wait (noDrop): output that nobody reads in time is late, not lost.
    this.#sockets = {
      hb: new zmq.Reply(), stdin: new zmq.Router(), control: new zmq.Router(), shell: new zmq.Router(),
      iopub: new zmq.XPublisher({ noDrop: true, sendHighWaterMark: WAITING, verbosity: 'allSubs' }),
    }
    for (const [name, socket] of Object.entries(this.#sockets)) {
      socket.linger = name === 'hb' ? 0 : 1000
      this.#outboxes[name] = new Outbox(socket)
    }
  }

  // bind binds all sockets where the connection file says, shell last: who can connect to it can connect to all.
  async bind(connection) {
    const { transport, ip } = connection
    const separator = transport === 'ipc' ? '-' : ':'
    for (const [name, socket] of Object.entries(this.#sockets)) {
      await socket.bind(`${transport}://${ip}${separator}${connection[name + '_port']}`)
    }
  }

  send(name, frames, sent) {
    this.#outboxes[name].send(frames, sent)
  }

  // flushed resolves when the sockets have all that was sent.
  flushed() {
    return Promise.all(Object.values(this.#outboxes).map(outbox => outbox.sent()))
  }

  // serve hands what comes on a socket to take, which returns before the next is read.
  async serve(name, take) {
    for await (const frames of this.#sockets[name]) take(frames)
  }

  // beat answers pings until the process ends.
  async beat() {
    for await (const frames of this.#sockets.hb) await this.#sockets.hb.send(frames)
  }

  // close closes the sockets, after up to a second for what is on its way.
  close() {
    for (const socket of Object.values(this.#sockets)) socket.close()
  }
}
