// Finds the address that a client is counted by.
import { type BlockList, isIP } from 'node:net'
import { peerOf, type Receiver } from '../platform.ts'

/** Only what trusted proxies added to X-Forwarded-For counts, because clients can send that header too. */
export const createAddressFinder =
  (trusted: BlockList | undefined) =>
  (request: Request, receiver?: Receiver | null): string => {
    const peer = peerOf(request, receiver)
    // The connection is already closed.
    if (peer === undefined) return 'unknown'
    const forwarded = trusted && request.headers.get('x-forwarded-for')
    return networkOf(forwarded ? walkForwarded(peer, forwarded, (address) => isWithin(trusted, address)) : peer)
  }

const isWithin = (list: BlockList, address: string): boolean =>
  list.check(address, isIP(address) === 6 ? 'ipv6' : 'ipv4')

/** Walks X-Forwarded-For from the right while the writer is trusted. An entry that is not an address ends the walk. */
export function walkForwarded(peer: string, forwarded: string, isTrusted: (address: string) => boolean): string {
  let address = peer
  for (const entry of forwarded.split(',').reverse()) {
    const next = isTrusted(address) ? parseAddress(entry.trim()) : undefined
    if (next === undefined) return address
    address = next
  }
  return address
}

/** Parses an address as proxies write it: bare, or with a port, where an IPv6 address is in brackets. */
function parseAddress(entry: string): string | undefined {
  const [, bracketed, plain] = /^(?:\[([^\]]*)\](?::\d{1,5})?|([^:]*):\d{1,5})$/.exec(entry) ?? []
  const address = bracketed ?? plain ?? entry
  const version = isIP(address)
  return version === 6 || (version === 4 && bracketed === undefined) ? address : undefined
}

/** Keeps an IPv4 address, also a mapped one. Cuts IPv6 to the first 64 bits: a client can choose the rest freely. */
export function networkOf(address: string): string {
  if (!address.includes(':')) return address
  // A URL normalises the groups. Bun rejects some addresses that end like an IPv4 address, so that part is converted.
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
