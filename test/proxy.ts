// A TCP proxy between the service and a server, for tests of what becomes of lost connections.
import { connect, createServer, type Socket } from 'node:net'

export type TcpProxy = {
  /** The URL it was made with, through the proxy. */
  url: string
  accepted(): number
  /** Leads new connections to another server from now on. */
  forwardTo(url: string): void
  /** Whether new connections are closed as soon as they are made. */
  setClosing(isClosing: boolean): void
  /** Closes every connection, on both sides: in order, or as a reset. */
  cut(how: 'end' | 'reset'): void
  /** Keeps every connection open and passes nothing on, as when the other end is gone without a word. */
  silence(): void
  /** Whether data is held back, also of new connections, as by a server that is stopped. It is passed on later. */
  setPaused(isPaused: boolean): void
  close(): void
}

/** How one connection is passed on; `dial` opens another one to the server. */
export type Relay = (guest: Socket, host: Socket, dial: () => Socket) => void

const pipe: Relay = (guest, host) => guest.pipe(host).pipe(guest)

export async function createProxy(url: string, relay: Relay = pipe): Promise<TcpProxy> {
  let target = new URL(url)
  let [isClosing, isPaused] = [false, false]
  let accepted = 0
  let sockets: Socket[] = []

  const dial = () => connect(Number(target.port), target.hostname)

  const server = createServer((guest) => {
    accepted += 1
    guest.on('error', () => {})
    if (isClosing) return guest.end()
    const host = dial()
    host.on('error', () => guest.destroy())
    guest.on('close', () => host.destroy())
    host.on('close', () => guest.destroy())
    if (!isPaused) relay(guest, host, dial)
    sockets.push(guest, host)
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const proxied = new URL(url)
  proxied.hostname = '127.0.0.1'
  proxied.port = String((server.address() as { port: number }).port)

  return {
    url: proxied.href,
    accepted: () => accepted,
    forwardTo(other) {
      target = new URL(other)
    },
    setClosing(value) {
      isClosing = value
    },
    cut(how) {
      for (const socket of sockets) how === 'end' ? socket.destroy() : socket.resetAndDestroy()
      sockets = []
    },
    silence() {
      for (const socket of sockets) socket.unpipe().pause()
      sockets = []
    },
    setPaused(value) {
      isPaused = value
      for (let index = 0; index < sockets.length; index += 2) {
        const [guest, host] = sockets.slice(index) as [Socket, Socket]
        if (isPaused) for (const socket of [guest, host]) socket.unpipe().pause()
        else guest.pipe(host).pipe(guest)
      }
    },
    close() {
      for (const socket of sockets) socket.destroy()
      server.close()
    },
  }
}
