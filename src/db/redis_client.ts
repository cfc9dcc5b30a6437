import type { Redis as Client, Cluster, RedisOptions } from 'ioredis'
import { splitHosts } from '../lib/hosts.ts'
import { readCa } from './tls.ts'

export type RedisClient = Client | Cluster

export type RedisConnection = {
  client: RedisClient
  /** The server that holds a key; undefined if none does. */
  nodeOf(key: string): string | undefined
  /** Of a cluster: asks it again which server holds what. */
  refresh?(): Promise<void>
}

type ConnectionOptions = {
  caFile: string | undefined
  keyPrefix: string
  commandTimeout: number
  /** Lua scripts of one key each, by the names of the methods that the client gets for them. */
  scripts: Record<string, string>
}

const retryDelay = (attempt: number) => Math.min(attempt * 50, 1_000)
/** After about ten seconds a node is forgotten until the cluster names it again: it may have another address now. */
const maxNodeAttempts = 20

const portOf = ({ port }: URL, fallback: number) => Number(port || fallback)
const hostOf = ({ hostname }: URL) => hostname.replace(/^\[|\]$/g, '')

/** Connects to one server, to the master that sentinels name, or to a cluster: the scheme of the URL says which. */
export async function connectRedis(
  text: string,
  { caFile, keyPrefix, commandTimeout, scripts }: ConnectionOptions,
): Promise<RedisConnection> {
  const ioredis = await import('ioredis')
  const urls = splitHosts(text)
  const [first] = urls as [URL]
  const isEncrypted = first.protocol.startsWith('rediss')
  // The client verifies the certificate and the name by these authorities.
  const tls = isEncrypted ? { tls: readCa(caFile) } : {}
  const shared = {
    ...tls,
    commandTimeout,
    connectTimeout: 2_000,
    // A server that is frozen keeps its connection. Something is sent every second.
    socketTimeout: 3_000,
    maxRetriesPerRequest: 0,
    // A server that was demoted keeps its connections in some setups.
    reconnectOnError: (error: Error) => error.message.includes('READONLY'),
  } satisfies RedisOptions
  // The commands of one turn of the event loop are sent in one write.
  const commander = {
    keyPrefix,
    enableAutoPipelining: true,
    enableOfflineQueue: false,
    // Defined with the client: commands that are already gathered in a pipeline do not know a later one.
    scripts: Object.fromEntries(Object.entries(scripts).map(([name, lua]) => [name, { lua, numberOfKeys: 1 }])),
  }
  const single = { ...shared, ...commander, retryStrategy: retryDelay }
  const [username, password] = [first.username, first.password].map(decodeURIComponent)
  const credentials = { ...(username ? { username } : {}), ...(password ? { password } : {}) }
  const hostsWith = (port: number) => urls.map((url) => ({ host: hostOf(url), port: portOf(url, port) }))

  if (first.protocol.endsWith('+sentinel:')) {
    const client = new ioredis.Redis({
      ...single,
      ...credentials,
      sentinels: hostsWith(26_379),
      name: decodeURIComponent(first.pathname.slice(1)),
      // Sentinels have users of their own. The default user is often the same, and one without a password accepts any.
      ...(password && !username ? { sentinelPassword: password } : {}),
      ...(isEncrypted ? { sentinelTLS: readCa(caFile), enableTLSForSentinelMode: true } : {}),
      sentinelCommandTimeout: 2_000,
      sentinelRetryStrategy: retryDelay,
    })
    return { client, nodeOf: () => first.pathname }
  }
  if (first.protocol.endsWith('+cluster:')) {
    const client = new ioredis.Cluster(hostsWith(6_379), {
      ...commander,
      redisOptions: { ...shared, ...credentials },
      // The state of the whole cluster: one lost master would keep the client from the others.
      enableReadyCheck: false,
      clusterRetryStrategy: retryDelay,
      clusterNodeRetryStrategy: (attempt) => (attempt > maxNodeAttempts ? null : retryDelay(attempt)),
      maxRedirections: 3,
      // Commands that are sent together and fail for several slots make the client look for none of their new servers.
      slotsRefreshInterval: 2_000,
      // Certificates are for names.
      ...(isEncrypted ? { dnsLookup: (address, callback) => callback(null, address) } : {}),
    })
    const slotOf = (key: string) => new ioredis.Command('get', [keyPrefix + key]).getSlot() as number
    return {
      client,
      nodeOf: (key) => client.slots[slotOf(key)]?.[0],
      refresh: () => new Promise((resolve) => client.refreshSlotsCache(() => resolve())),
    }
  }
  const client = new ioredis.Redis(text, single)
  // The client would go on with database 0.
  client.on('error', (error: Error & { command?: { name: string } }) => {
    if (error.command?.name === 'select') client.disconnect(true)
  })
  return { client, nodeOf: () => first.host }
}
