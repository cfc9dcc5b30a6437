import { expect, test } from 'bun:test'
import { createTenant, eventually } from '../program.ts'
import { useProgram } from '../use.ts'

const { client, operator, settings } = useProgram(() => ({ LOG_LEVEL: 'trace' }))
/** The harness fails a server whose log has the key of a tenant. */
const tenantOf = (limit?: number) => createTenant(settings, limit)

test('a new key works immediately, and its use is shown in the list', async () => {
  const { org, prompt, key } = await tenantOf()
  const usedFrom = Date.now()
  expect((await client.getHistory(prompt, key)).status).toBe(200)
  const lastUse = async () => (await operator.json('keys', 'list', '--org', org))[0]?.last_used_at
  await eventually(async () => (await lastUse()) !== null, true)
  expect(Date.parse(await lastUse())).toBeWithin(usedFrom, Date.now() + 1)
})

test('a key in use is rejected within a second of its revocation', async () => {
  const { prompt, key, keyId } = await tenantOf()
  const revoking = operator.one('keys', 'revoke', keyId).then(() => performance.now())
  let revokedAt = Number.POSITIVE_INFINITY
  revoking.then((at) => {
    revokedAt = at
  })
  let status = 200
  // The key is used all the time, so that the server's cache of it is as fresh as possible.
  while (status === 200) {
    const sentAt = performance.now()
    ;({ status } = await client.getHistory(prompt, key))
    // The time of sending counts: however slow the machine is, what is sent after the second is rejected.
    if (sentAt - revokedAt >= 1_000) expect(status).toBe(401)
  }
  expect(status).toBe(401)
  await revoking
})
