// Decides which addresses an endpoint may reach. Organisations choose the URLs, so by default only public ones.
import { BlockList, isIP } from 'node:net'
import type { HostList } from '../setting_types.ts'

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
