import { expect, test } from 'bun:test'
import { isIP } from 'node:net'
import fc from 'fast-check'
import { networkOf, walkForwarded } from '../../src/http/client_address.ts'
import { addressList } from '../../src/setting_types.ts'

const seed = Number(process.env.TEST_SEED ?? Date.now())

/** What an entry names, as a proxy may have written it: bare, or with a port. */
const written = (address: string) =>
  fc.constantFrom(address, ...(isIP(address) === 6 ? [`[${address}]`, `[${address}]:443`] : [`${address}:443`]))

const address = fc.oneof(fc.ipV4(), fc.ipV6())
test('only what trusted proxies wrote is believed, whatever callers put before it', () => {
  const chain = fc.record({
    forged: fc.array(fc.oneof(address, fc.string())),
    caller: address,
    proxies: fc.uniqueArray(address, { minLength: 1, maxLength: 5 }),
    space: fc.constantFrom(',', ', ', ' ,\t'),
  })
  const spelled = chain.chain((given) =>
    fc.tuple(fc.constant(given), fc.tuple(...[given.caller, ...given.proxies.slice(1)].map(written))),
  )
  fc.assert(
    fc.property(spelled, ([{ forged, caller, proxies, space }, entries]) => {
      fc.pre(!proxies.includes(caller))
      // The nearest proxy is the other end of the connection; each of the others was added by the next one.
      const [peer = '', ...others] = proxies
      const header = [...forged, ...entries].join(space)
      const trusted = new Set([peer, ...others])
      expect(walkForwarded(peer, header, (one) => trusted.has(one))).toBe(caller)
      // Without trust the header says nothing.
      expect(walkForwarded(peer, header, () => false)).toBe(peer)
    }),
    { seed, numRuns: 500 },
  )
})

test.each([
  ...['', 'unknown', '_hidden', '1.2.3', '1.2.3.4.5', '[1.2.3.4]', '::g', '1.2.3.4:x', '[::1', '"'].flatMap(
    (broken) => [
      [`192.0.2.1, ${broken}`, '10.0.0.1'],
      [`192.0.2.1, ${broken}, 10.0.0.2`, '10.0.0.2'],
    ],
  ),
  ['10.0.0.3, 10.0.0.2', '10.0.0.3'],
])('of the header %p, the last address is counted that a trusted proxy wrote: %s', (header, client) => {
  expect(walkForwarded('10.0.0.1', header as string, (one) => one.startsWith('10.'))).toBe(client as string)
})

test.each([
  ['192.0.2.7', '192.0.2.7'],
  ['::ffff:192.0.2.7', '192.0.2.7'],
  ['::ffff:c000:207', '192.0.2.7'],
  ['0:0:0:0:0:FFFF:192.0.2.7', '192.0.2.7'],
  ['2001:db8:1:2:3:4:5:6', '2001:db8:1:2::/64'],
  ['2001:0DB8:0001:0002::', '2001:db8:1:2::/64'],
  ['2001:db8::1', '2001:db8:0:0::/64'],
  ['::1', '0:0:0:0::/64'],
  ['::', '0:0:0:0::/64'],
  ['fe80::1%eth0', 'fe80:0:0:0::/64'],
  ['64:ff9b::192.0.2.7', '64:ff9b:0:0::/64'],
  ['2001:db8:1:2::192.0.2.7', '2001:db8:1:2::/64'],
])('%s is counted as %s', (given, network) => {
  expect(networkOf(given)).toBe(network)
})

test.each([
  ['10.1.2.3', '10.1.2.200', '::ffff:10.1.2.4', false],
  ['10.1.2.3/32', '10.1.2.3', '::ffff:10.1.2.3', true],
  ['10.1.2.3/17, fd00::/8', '10.1.127.255', 'fd12::1', true],
  ['10.1.2.3/17, fd00::/8', '10.1.128.0', 'fe12::1', false],
  ['0.0.0.0/0, ::/0', '192.0.2.7', '2001:db8::1', true],
])('the networks %s hold %s and %s: %p', (networks, ipv4, ipv6, isWithin) => {
  const list = addressList.parse(networks, 'TRUSTED_PROXIES')
  expect(list.check(ipv4)).toBe(isWithin)
  expect(list.check(ipv6, 'ipv6')).toBe(isWithin)
})
