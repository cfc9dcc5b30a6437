import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { within } from '../lib/deadline.ts'
import { listHosts } from '../lib/hosts.ts'
import { openPool, type Primary } from './driver.ts'
import { NoPrimaryError } from './errors.ts'
import type { Tls } from './tls.ts'

/** A host that does not answer within this time is away. */
const answerMs = 3_000
const session = { queryTimeoutMs: answerMs, mustBeWritable: true, skipsSettings: true }

/**
 * Connects to whichever of several hosts can be written to. The driver's own list of hosts loses statements while hosts
 * are away. All connections go to the same host, until one is lost.
 */
export function createPrimary(hosts: { url: string; ssl: Tls }[]): Primary {
  let known: Promise<URL> | undefined

  const findWritable = () =>
    Promise.any(
      hosts.map(async (host) => {
        await requireWritable(host)
        return new URL(host.url)
      }),
    ).catch((error: AggregateError) => {
      const names = hosts.map(({ url }) => listHosts([new URL(url)]))
      throw new NoPrimaryError(error.errors.map((reason, index) => [names[index] as string, reason]))
    })

  return {
    hosts: listHosts(hosts.map(({ url }) => new URL(url))),
    async connect() {
      known ??= findWritable()
      try {
        return await openSocket(await known)
      } catch (error) {
        // Another host may be the primary by the next attempt.
        known = undefined
        throw error
      }
    },
    forget() {
      known = undefined
    },
  }
}

/** Rejects unless a session on this host can write. */
async function requireWritable(host: { url: string; ssl: Tls }): Promise<void> {
  const pool = openPool(host, session, 1, 0)
  try {
    await within(answerMs, pool`select 1`)
  } finally {
    pool.end({ timeout: 0 }).catch(() => {})
  }
}

async function openSocket({ hostname, port }: URL): Promise<Socket> {
  const address = { host: hostname.replace(/^\[|\]$/g, ''), port: Number(port || 5432) }
  const socket = connect(address)
  try {
    await within(answerMs, once(socket, 'connect'))
  } catch (error) {
    socket.destroy()
    throw error
  }
  // The driver takes from here which name the certificate must have, and which host its errors name.
  return Object.assign(socket, address)
}
