import postgres from 'postgres'
import type { Tls } from './tls.ts'

/** Finds the host that can be written to, of several. */
export type Primary = {
  /** All of them, for messages. */
  hosts: string
  connect(): Promise<unknown>
  /** Must be called when a connection is lost or replaced: the next one may lead to another host. */
  forget(): void
}

/** Where the database is: a server, the primary of several, or a factory of sockets to the embedded engine. */
export type Target = { url: string; ssl: Tls; primary?: Primary } | { socket: () => unknown }

export type Driver = postgres.ISql<{ bigint: number }>

export type SessionOptions = {
  /** Zero for no deadline. */
  queryTimeoutMs: number
  /** Whether only sessions that can write are used. A server that can only be read is the wrong one for a service. */
  mustBeWritable?: boolean
  /** Whether the session starts without the settings that a pooler rejects. */
  skipsSettings?: boolean
}

/**
 * Statements are planned once for any values: planning takes longer than most of them run. A plan for a small table must
 * not scan it from end to end once it has grown, nor collect all rows of a prompt to sort them: each read has an index in
 * its order. Compiling never pays off for reads through an index.
 */
const plannerSettings = {
  jit: 'off',
  plan_cache_mode: 'force_generic_plan',
  enable_seqscan: 'off',
  enable_bitmapscan: 'off',
}

/**
 * What the statements rely on, whatever the server is set to: the isolation of those outside a transaction; nulls in
 * arrays, which would be strings; the format that parseTimestamp reads.
 */
export const requiredSettings = {
  default_transaction_isolation: 'read committed',
  array_nulls: 'on',
  TimeZone: 'UTC',
  DateStyle: 'ISO',
} as const

/** Poolers pass these on. */
const poolerSettings = { TimeZone: requiredSettings.TimeZone, DateStyle: requiredSettings.DateStyle }

/** The driver's own types leave some of its options out. */
type DriverOptions = postgres.Options<{
  bigint: postgres.PostgresType<number>
  [name: string]: postgres.PostgresType
}> & {
  max_pipeline?: number
  socket?: () => unknown
}

/** The server ends a transaction that is idle for this long, and so releases the locks of a client that was lost. */
const timeoutsOf = ({ queryTimeoutMs }: SessionOptions) =>
  queryTimeoutMs > 0 ? { idle_in_transaction_session_timeout: 10_000 } : {}

/** Random, so that a pool does not reconnect all together; at most 1 s, to notice soon that a database is back. */
const backoff = (failures: number): number => Math.min(0.1 * 2 ** failures, 1) * (0.5 + Math.random() / 2)

/** Formats an array of strings as a Postgres literal. */
const formatTextArray = (values: (string | null)[]): string =>
  `{${values.map((text) => (text === null ? 'null' : `"${text.replace(/["\\]/g, '\\$&')}"`)).join(',')}}`

/** Makes it ISO 8601: in other formats, `Date` takes the year 1 for 2001. */
const parseTimestamp = (text: string): Date => new Date(`${text.replace(' ', 'T')}:00`)

/** Statements of any text, such as those that prune, get times as strings. */
const formatTimestamp = (time: Date | string): string => new Date(time).toISOString()

/** What the driver does not parse: an escaped name of a database, and an IPv6 address. */
function parseAddress(url: string) {
  const { pathname, hostname, port } = new URL(url)
  const [, address] = /^\[(.*)\]$/.exec(hostname) ?? []
  return {
    database: decodeURIComponent(pathname.slice(1)),
    ...(address ? { host: [address], port: [Number(port || 5432)] } : {}),
  }
}

/**
 * A pool of at most `max` connections, each of which has at most `pipeline` further statements in flight. Calls `onLost`
 * when a connection is closed, before another takes its place.
 */
export function openPool(
  target: Target,
  session: SessionOptions,
  max: number,
  pipeline: number,
  onLost: () => void = () => {},
) {
  const options: DriverOptions = {
    max,
    max_pipeline: pipeline,
    connect_timeout: 3,
    backoff,
    onnotice: () => {},
    onclose: onLost,
    connection: {
      application_name: 'prompt-signals',
      statement_timeout: session.queryTimeoutMs,
      ...(session.skipsSettings ? poolerSettings : { ...plannerSettings, ...requiredSettings, ...timeoutsOf(session) }),
    },
    // The driver would query the types of arrays on every new connection. Only arrays of text are sent; to read one,
    // select it with to_json.
    fetch_types: false,
    types: {
      bigint: { to: 20, from: [20], parse: Number, serialize: String },
      texts: { to: 1009, from: [], parse: String, serialize: formatTextArray },
      timestamp: { to: 1184, from: [1184], parse: parseTimestamp, serialize: formatTimestamp },
    },
    ...(session.mustBeWritable ? { target_session_attrs: 'read-write' as const } : {}),
  }
  if ('socket' in target) return postgres('', { ...options, socket: target.socket } as DriverOptions)
  const { url, ssl, primary } = target
  Object.assign(options, { ssl, ...parseAddress(url) })
  if (!primary) return postgres(url, options)
  // With a socket, the driver uses the path only to name the server in errors.
  return postgres(url, { ...options, socket: primary.connect, path: primary.hosts } as DriverOptions)
}

type Pool = ReturnType<typeof openPool>

/** The connections for single statements, and those for transactions. */
export type PoolPair = { statements: Pool; transactions: Pool }

/** How long the pending statements of a pool may take when it is closed. */
const endSeconds = 5

/** Single statements are not pipelined, so that a slow one delays no others. Within a transaction the driver has to. */
export function openPools(target: Target, session: SessionOptions, sizes: Record<keyof PoolPair, number>) {
  const open = (): PoolPair => ({
    statements: openPool(target, session, sizes.statements, 0, notifyLost),
    transactions: openPool(target, session, sizes.transactions, 1, notifyLost),
  })
  const lossListeners: (() => void)[] = []
  const notifyLost = () => {
    if ('url' in target) target.primary?.forget()
    for (const onLost of lossListeners) onLost()
  }
  let current = open()

  const end = async ({ statements, transactions }: PoolPair) => {
    await Promise.all([statements.end({ timeout: endSeconds }), transactions.end({ timeout: endSeconds })])
  }

  return {
    get current() {
      return current
    },
    /** Replaces all, as the driver cannot close one. One whose peer vanished could stay in use for 15 minutes. */
    replace(broken: PoolPair): void {
      if (broken !== current || !('url' in target)) return
      notifyLost()
      current = open()
      end(broken).catch(() => {})
    },
    onLost: (listener: () => void) => void lossListeners.push(listener),
    end: () => end(current),
  }
}
