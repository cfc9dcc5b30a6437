import { expect, test } from 'bun:test'
import { isOriginPattern, matchesOrigin } from '../../src/lib/origins.ts'

test.each([
  'https://example.com',
  'http://localhost:5173',
  'https://example.com:8443',
  'https://*.example.com',
  'https://*.example.com:8443',
  'https://xn--bcher-kva.example',
  'http://[::1]:3000',
  `https://${'a.'.repeat(124)}local:65535`,
])('%s can be allowed', (text) => {
  expect(isOriginPattern(text)).toBe(true)
})

test.each([
  '',
  '*',
  'null',
  'example.com',
  '*.example.com',
  'https://',
  'https://*',
  'https://*.com',
  'https://*.*.example.com',
  'https://a.*.example.com',
  'https://example.*',
  'http://*.example.com',
  'https://example.com/',
  'https://example.com/page',
  'https://example.com?x',
  'https://Example.com',
  'https://example.com:443',
  'https://user@example.com',
  'https://bücher.example',
  'https://example.com, https://example.org',
  'https://example.com\r\nx: y',
  'file:///page.html',
  'chrome-extension://abc',
  `https://${'a.'.repeat(130)}example.com:65535`,
])('%p cannot', (text) => {
  expect(isOriginPattern(text)).toBe(false)
})

test.each([
  ['https://example.com', 'https://example.com'],
  ['http://localhost:5173', 'http://localhost:5173'],
  ['https://*.example.com', 'https://www.example.com'],
  ['https://*.example.com', 'https://a.b.example.com'],
  ['https://*.example.com:8443', 'https://www.example.com:8443'],
])('%s allows %s', (pattern, origin) => {
  expect(matchesOrigin(origin, ['https://other.test', pattern])).toBe(true)
})

test.each([
  ['https://example.com', 'http://example.com'],
  ['https://example.com', 'https://example.com:8443'],
  ['https://example.com', 'https://www.example.com'],
  ['https://example.com', 'https://example.com.evil.com'],
  ['https://example.com', 'https://example.com, https://example.com'],
  ['https://example.com', 'null'],
  ['https://example.com', ''],
  ['https://*.example.com', 'https://example.com'],
  ['https://*.example.com', 'https://evilexample.com'],
  ['https://*.example.com', 'https://example.com.evil.com'],
  ['https://*.example.com', 'https://www.example.com.evil.com'],
  ['https://*.example.com', 'http://www.example.com'],
  ['https://*.example.com', 'https://www.example.com:8443'],
  ['https://*.example.com:8443', 'https://www.example.com'],
  ['https://*.example.com', 'https://.example.com'],
  ['https://*.example.com', 'https://a..example.com'],
  ['https://*.example.com', 'https://*.example.com'],
  ['https://*.example.com', 'https://evil.com/.example.com'],
  ['https://*.example.com', 'https://evil.com#.example.com'],
  ['https://*.example.com', 'https://evil.com?.example.com'],
  ['https://*.example.com', 'https://evil.com\\.example.com'],
  ['https://*.example.com', 'https://evil.com:80@www.example.com'],
  ['https://*.example.com', 'https://evil.com, https://www.example.com'],
  ['https://*.example.com', 'null'],
])('%s does not allow %s', (pattern, origin) => {
  expect(matchesOrigin(origin, [pattern])).toBe(false)
})
