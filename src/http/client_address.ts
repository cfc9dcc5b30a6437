import { type BlockList, isIP } from 'node:net'
import { peerOf, type Receiver } from '../platform.ts'

/** Finds the address that a request is counted by. */
export type AddressFinder = (request: Request, receiver?: Receiver | null) => string

/** A connection that is closed already has no address any more. */
const unknown = 'unknown'

/**
 * The address of the connection, unless that is a trusted proxy: then the one that the proxy has added to
 * X-Forwarded-For. Anybody can send that header, so nothing in it is believed but what a trusted proxy wrote.
 */
export const createAddressFinder =
  (trusted: BlockList | undefined): AddressFinder =>
  (request, receiver) => {
    const peer = peerOf(request, receiver)
    if (peer === undefined) return unknown
    const forwarded = trusted && request.headers.get('x-forwarded-for')
    return networkOf(forwarded ? walkForwarded(peer, forwarded, (address) => isWithin(trusted, address)) : peer)
  }

const isWithin = (list: BlockList, address: string): boolean =>
  list.check(address, isIP(address) === 6 ? 'ipv6' : 'ipv4')

/**
 * Goes through X-Forwarded-For from the right, where the nearest proxy wrote, for as long as the writer is trusted. At
 * an entry that is no address it stops: the caller is then the last proxy that is known.
 */
export function walkForwarded(peer: string, forwarded: string, isTrusted: (address: string) => boolean): string {
  let address = peer
  for (const entry of forwarded.split(',').reverse()) {
    const next = isTrusted(address) ? parseAddress(entry.trim()) : undefined
    if (next === undefined) return address
    address = next
  }
  return address
}

/** An address as proxies write it: bare, or with a port, for which an IPv6 address is in brackets. */
function parseAddress(entry: string): string | undefined {
  const [, bracketed, plain] = /^(?:\[([^\]]*)\](?::\d{1,5})?|([^:]*):\d{1,5})$/.exec(entry) ?? []
  const address = bracketed ?? plain ?? entry
  const version = isIP(address)
  return version === 6 || (version === 4 && bracketed === undefined) ? address : undefined
}

/**
 * An IPv4 address as it is, also when it is written as an IPv6 one. Of an IPv6 address the first 64 bits: everything
 * behind them is the caller's own to choose.
 */
export function networkOf(address: string): string {
  if (!address.includes(':')) return address
  // A URL has one way to write an address: as hexadecimal groups in lower case, with the longest run of zeros left out. Bun
  // rejects some that end as an IPv4 address does.
  const hex = (high: string, low: string) => (Number(high) * 256 + Number(low)).toString(16)
  const plain = address
    .replace(/%.*$/, '')
    .replace(/(\d+)\.(\d+)\.(\d+)\.(\d+)$/, (_, a, b, c, d) => `${hex(a, b)}:${hex(c, d)}`)
  const written = new URL(`http://[${plain}]`).hostname.slice(1, -1)
  const mapped = /^::ffff:([0-9a-f]+):([0-9a-f]+)$/.exec(written)?.slice(1)
  if (mapped) {
    const groups = mapped.map((group) => Number.parseInt(group, 16))
    return groups.flatMap((group) => [group >> 8, group & 255]).join('.')
  }
  const zeros = '0:'.repeat(8 - written.split(':').filter(Boolean).length)
  const groups = written.replace('::', `:${zeros}`).split(':').filter(Boolean)
  return `${groups.slice(0, 4).join(':')}::/64`
}
