import { expect, test } from 'bun:test'
import { Webhook } from 'standardwebhooks'
import { eventually } from '../program.ts'
import { useAdmin, useOwnService, useTenant } from '../use.ts'
import { type Received, useReceiver } from './receiver.ts'

const service = useOwnService({ limits: { WEBHOOK_ALLOWED_HOSTS: '127.0.0.1' } })
const tenant = useTenant(service)
const admin = useAdmin(service, tenant)
const receiver = useReceiver()

async function create(url: string) {
  const { status, body } = await service.post('/webhooks/endpoints', admin.key, { url, enabled: false })
  expect(status).toBe(201)
  const { id, secret } = body.data
  const sendPing = () => service.post(`/webhooks/endpoints/${id}/test`, admin.key)
  return { id, secret, sendPing }
}

test('a test sends one signed ping, also to a disabled endpoint, and answers with the outcome', async () => {
  const { id, secret, sendPing } = await create(receiver.url)
  receiver.answer = () => new Response('x'.repeat(2_000))
  const { status, body } = await sendPing()
  expect([status, body.data.delivered, body.data.response_code]).toEqual([200, true, 200])
  expect(body.data.response_text).toBe('x'.repeat(1_000))
  const [{ headers, body: sent, id: sentId }] = receiver.received as [Received]
  expect([receiver.received.length, sentId]).toEqual([1, body.data.id])
  expect(new Webhook(secret).verify(sent, headers)).toMatchObject({ type: 'ping', data: {} })
  receiver.answer = () => new Response('no', { status: 500 })
  expect((await sendPing()).body.data).toMatchObject({ delivered: false, response_code: 500, response_text: 'no' })
  expect((await service.get(`/webhooks/endpoints/${id}/deliveries`, admin.key)).body.data).toEqual([])
})

test('http is accepted for the hosts that the operator allows, and for no others', async () => {
  const post = async (url: string) => (await service.post('/webhooks/endpoints', admin.key, { url })).status
  expect([await post('http://127.0.0.1:9/'), await post('http://127.0.0.2/'), await post('http://localhost/')]).toEqual(
    [201, 422, 422],
  )
})

test('an organisation has two tests in flight, which outlast the deadline of other requests', async () => {
  const { sendPing } = await create(receiver.url)
  receiver.received.length = 0
  const { promise: released, resolve: release } = Promise.withResolvers<void>()
  receiver.answer = () => released.then(() => new Response(null, { status: 204 }))
  const waiting = [sendPing(), sendPing()]
  const startedAt = performance.now()
  await eventually(() => receiver.received.length, 2)
  expect((await sendPing()).status).toBe(503)
  await eventually(() => performance.now() - startedAt > 5_000, true)
  release()
  expect((await Promise.all(waiting)).map(({ status, body }) => [status, body.data?.delivered])).toEqual([
    [200, true],
    [200, true],
  ])
})
