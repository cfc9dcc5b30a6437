// Decides which URLs an endpoint may have, and which addresses it may reach. Organisations choose the URLs, so by default
// only public addresses. They are checked with every connection, because names can resolve to another later.
import { BlockList, isIP } from 'node:net'
import type { Detail } from '../errors.ts'
import type { HostList } from '../lib/hosts.ts'
import type { EndpointKind } from './schema.ts'

/** Not globally reachable, by the IANA registries of special-purpose addresses. */
const specialIpv4: [string, number][] = [
  ['0.0.0.0', 8], // this network
  ['10.0.0.0', 8], // private
  ['100.64.0.0', 10], // shared by a carrier
  ['127.0.0.0', 8], // loopback
  ['169.254.0.0', 16], // link-local, metadata services
  ['172.16.0.0', 12], // private
  ['192.0.0.0', 24], // protocol assignments
  ['192.0.2.0', 24], // documentation
  ['192.31.196.0', 24], // AS112
  ['192.52.193.0', 24], // AMT
  ['192.88.99.0', 24], // 6to4 relays
  ['192.168.0.0', 16], // private
  ['192.175.48.0', 24], // AS112
  ['198.18.0.0', 15], // benchmarks
  ['198.51.100.0', 24], // documentation
  ['203.0.113.0', 24], // documentation
  ['224.0.0.0', 3], // multicast, reserved, broadcast
]

/** Those within 2000::/3. Everything outside is special: loopback, local, multicast, IPv4-mapped, NAT64. */
const specialIpv6: [string, number][] = [
  ['2001::', 23], // protocol assignments, Teredo
  ['2001:db8::', 32], // documentation
  ['2002::', 16], // 6to4
  ['2620:4f:8000::', 48], // AS112
  ['3fff::', 20], // documentation
]

const special = new BlockList()
for (const subnet of specialIpv4) special.addSubnet(...subnet, 'ipv4')
for (const subnet of specialIpv6) special.addSubnet(...subnet, 'ipv6')
const global = new BlockList()
global.addSubnet('2000::', 3, 'ipv6')

/** False for text that is no address. */
export function isPublicAddress(address: string): boolean {
  if (isIP(address) === 4) return !special.check(address, 'ipv4')
  return isIP(address) === 6 && global.check(address, 'ipv6') && !special.check(address, 'ipv6')
}

/** Whether the operator has opened an address, or the host name by which it was found. Brackets of IPv6 are ignored. */
export function isAllowedHost(allowed: HostList | undefined, host: string): boolean {
  if (!allowed) return false
  const address = host.replace(/^\[|\]$/g, '')
  const family = isIP(address)
  if (family === 0) return allowed.names.has(host.toLowerCase())
  return allowed.networks.check(address, family === 4 ? 'ipv4' : 'ipv6')
}

const slackHost = 'hooks.slack.com'

/** Returns the URL in its normal form, or what is wrong with it. Messages never contain it. Allowed hosts may use http. */
export function parseEndpointUrl(
  { url, kind }: { url: string; kind: EndpointKind },
  allowedHosts: HostList | undefined,
): string | Detail {
  if (!URL.canParse(url)) return { path: '/url', message: 'must be a URL, such as https://example.com/webhooks' }
  const { protocol, hostname, username, password, href } = new URL(url)
  const isOpen = protocol === 'https:' || (protocol === 'http:' && isAllowedHost(allowedHosts, hostname))
  if (!isOpen) return { path: '/url', message: 'must begin with https://, unless WEBHOOK_ALLOWED_HOSTS names its host' }
  if (username || password) return { path: '/url', message: 'must have no user name and no password' }
  if (href.includes('#')) return { path: '/url', message: 'must have no fragment' }
  // Slack accepts nothing else, and would answer every webhook with an error.
  if (hostname === slackHost && kind !== 'slack') {
    return { path: '/kind', message: `must be slack for a URL of ${slackHost}` }
  }
  return href
}

/** The URL without what could be a secret: its query, and of an incoming webhook everything after the host. */
export function maskUrl({ url, kind }: { url: string; kind: EndpointKind }): string {
  const parsed = URL.parse(url)
  // A restored backup can have any text here. One endpoint must not hide the others.
  if (!parsed) return '…'
  const { origin, pathname, search } = parsed
  return kind === 'slack' ? `${origin}/…` : `${origin}${pathname}${search && '?…'}`
}
