import { expect, test } from 'bun:test'
import { createApp } from '../../src/app.ts'
import { crashResponse } from '../../src/http/middleware.ts'
import { listen } from '../../src/platform.ts'
import { createClient } from '../client.ts'
import { startStopwatch } from '../program.ts'
import type { TestService } from '../service.ts'
import { useOwnService, useTenant } from '../use.ts'

const service = useOwnService()
const tenant = useTenant(service)

async function callBroken(broken: Partial<TestService['services']>) {
  const listener = listen(createApp({ ...service.services, ...broken }), crashResponse, '127.0.0.1', 0)
  try {
    // It reads the whole document of the interface, which is no part of the request.
    const client = await createClient(listener.url)
    const stop = startStopwatch()
    const answer = await client.postSignal(tenant.prompt, tenant.key)
    return { ...answer, ms: stop() }
  } finally {
    await listener.stop()
  }
}

test.each([
  ['an error', new Error('select secret from api_keys')],
  ['a string', 'select secret from api_keys'],
  ['an object', { sql: 'select secret from api_keys' }],
  ['nothing', undefined],
  ['an error with a status', Object.assign(new Error('secret'), { status: 418 })],
])('a crash with %s is an internal error in the envelope that reveals nothing of it', async (_, thrown) => {
  const { status, headers, text, body } = await callBroken({
    findPrompt: () => {
      throw thrown
    },
  })
  expect([status, body.error.code]).toEqual([500, 'internal_error'])
  expect(text).not.toMatch(/secret|select/)
  expect(headers.get('retry-after')).toBe('1')
})

test('a part that never answers ends in an internal error within five seconds', async () => {
  const { status, body, ms } = await callBroken({ findPrompt: () => new Promise(() => {}) })
  expect([status, body.error.code]).toEqual([500, 'internal_error'])
  expect(ms).toBeLessThan(5_000)
})
