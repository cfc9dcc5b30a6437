import type { LoadResult, Request } from './load.ts'

type Options = {
  url: string
  requests: Request[]
  connections: number
  seconds: number
  /** Requests a second that arrive at random; undefined sends as fast as answers come. */
  rate: number | undefined
  status: number
}

type Connection = { socket: Bun.Socket | undefined; arrivedAt: number }

/**
 * Open-loop load: requests arrive at random (a Poisson process), however long the answers take, and each takes a free
 * connection or waits for one. Its latency counts from its arrival, so that a stall shows in all that arrive meanwhile.
 */
export async function applyOpenLoad({
  url,
  requests,
  connections,
  seconds,
  rate,
  status,
}: Options): Promise<LoadResult> {
  const { hostname, port } = new URL(url)
  const texts = requests.map((request) => write(request, `${hostname}:${port}`))
  const expected = `HTTP/1.1 ${status} `
  const free: Connection[] = []
  const arrivals: number[] = []
  const latencies: number[] = []
  let [sent, errors, open] = [0, 0, 0]
  let isOver = false

  const send = (connection: Connection, arrivedAt: number) => {
    connection.arrivedAt = arrivedAt
    connection.socket?.write(texts[sent % texts.length] as string)
    sent += 1
  }
  const connect = async (): Promise<void> => {
    const connection: Connection = { socket: undefined, arrivedAt: 0 }
    connection.socket = await Bun.connect({
      hostname,
      port: Number(port),
      socket: {
        // An answer is small enough to come in one piece.
        data(_, data) {
          const now = performance.now()
          latencies.push(now - connection.arrivedAt)
          if (data.toString('latin1', 0, expected.length) !== expected) errors += 1
          const waiting = arrivals.shift()
          if (waiting !== undefined) send(connection, waiting)
          else if (rate === undefined && !isOver) send(connection, now)
          else free.push(connection)
        },
        close() {
          open -= 1
        },
      },
    })
    open += 1
    free.push(connection)
  }
  await Promise.all(Array.from({ length: connections }, connect))

  const startedAt = performance.now()
  const endsAt = startedAt + seconds * 1_000
  if (rate === undefined) for (const connection of free.splice(0)) send(connection, performance.now())
  for (let next = startedAt; ; ) {
    const now = performance.now()
    if (now >= endsAt) break
    for (; rate !== undefined && next <= now; next += (-Math.log(1 - Math.random()) / rate) * 1_000) {
      const connection = free.pop()
      if (connection) send(connection, next)
      else arrivals.push(next)
    }
    await new Promise((resolve) => setImmediate(resolve))
  }
  isOver = true
  const answeredInTime = latencies.length
  const givenUpAt = performance.now() + 5_000
  while (free.length < open && performance.now() < givenUpAt) await Bun.sleep(10)
  errors += sent - latencies.length + (connections - open)
  for (const { socket } of free) socket?.end()

  latencies.sort((a, b) => a - b)
  const percentile = (share: number) => latencies[Math.floor(latencies.length * share)] ?? Number.NaN
  return {
    requestsPerSecond: answeredInTime / seconds,
    p50Ms: percentile(0.5),
    p99Ms: percentile(0.99),
    errors,
    answered: latencies.length,
  }
}

const write = ({ method, path, key, body }: Request, host: string): string =>
  `${method} ${path} HTTP/1.1\r\nHost: ${host}\r\nAuthorization: Bearer ${key}\r\n` +
  `Content-Type: application/json\r\nContent-Length: ${body.length}\r\n\r\n${body}`
