// Reads what programs print that the user's code has started and that inherit its standard output and error.
import { mkdtempSync, readSync, rmSync } from 'node:fs'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { StringDecoder } from 'node:string_decoder'

const PIECE = 1 << 16 // bytes
const MOST = 1 << 20 // bytes that are read at a cell's end from programs that print on and on

export class Programs {
  #print
  #sources = []

  // print(name, text) takes what a program has printed to "stdout" or "stderr".
  constructor(print) {
    this.#print = print
  }

  // listen returns the path of the socket to which two connections are to be made, one for each stream. Its folder is gone
  // when they are.
  listen() {
    const directory = mkdtempSync(join(tmpdir(), 'node-'))
    const path = join(directory, 's')
    return new Promise((resolve, reject) => {
      const server = createServer(socket => {
        this.#accept(socket)
        if (this.#sources.length < 2) return
        server.close()
        rmSync(directory, { recursive: true, force: true })
      })
      server.once('error', reject).listen(path, () => resolve(path))
    })
  }

  #accept(socket) {
    const decoder = new StringDecoder()
    const source = { fd: socket._handle.fd, name: '', take: data => this.#take(source, decoder.write(data)) }
    this.#sources.push(source)
    socket.on('data', source.take)
    socket.on('error', () => {})
  }

  #take(source, text) {
    if (!source.name) {
      const end = text.indexOf('\n')
      source.name = text.slice(0, end)
      text = text.slice(end + 1)
    }
    if (text) this.#print(source.name, text)
  }

  // drain takes what programs have printed up to now.
  drain() {
    const buffer = Buffer.allocUnsafe(PIECE)
    for (const source of this.#sources) {
      for (let total = 0; total < MOST;) {
        let size = 0
        try {
          size = readSync(source.fd, buffer)
        } catch { // there is nothing more
        }
        if (size === 0) break
        total += size
        source.take(buffer.subarray(0, size))
      }
    }
  }
}
