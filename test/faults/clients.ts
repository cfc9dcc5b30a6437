// The suite's own connections, beside those of the service.
import { Redis } from 'ioredis'
import postgres from 'postgres'

export async function queryPostgres<T>(url: string, query: (sql: postgres.Sql) => PromiseLike<T>): Promise<T> {
  const sql = postgres(url, { max: 1, connect_timeout: 2, onnotice: () => {} })
  try {
    return await query(sql)
  } finally {
    await sql.end({ timeout: 0 })
  }
}

/** What Redis has counted for the organisation this month; null when it has nothing, or does not answer. */
export async function readGate(url: string, organisation: number): Promise<number | null> {
  const text = await queryRedis(url, (client) => client.get(gateKey(organisation))).catch(() => null)
  return text === null ? null : Number(text)
}

export async function setGate(url: string, organisation: number, count: number): Promise<void> {
  await queryRedis(url, (client) => client.set(gateKey(organisation), count))
}

const gateKey = (organisation: number): string =>
  `prompt-signals:signals:{${organisation}}:${new Date().toISOString().slice(0, 7)}`

export async function queryRedis<T>(url: string, query: (client: Redis) => Promise<T>): Promise<T> {
  const client = new Redis(url, { lazyConnect: true, retryStrategy: () => null, commandTimeout: 1_000 })
  // connect() rejects with the same error; without a listener it would be printed as well.
  client.on('error', () => {})
  try {
    await client.connect()
    return await query(client)
  } finally {
    client.disconnect()
  }
}
