import { expect, test } from 'bun:test'
import { createRouteWrapper } from '../../src/http/middleware.ts'
import { useService, useTenant } from '../use.ts'

const service = useService()
const tenant = useTenant(service)

test.each([
  ['GET', [1, 2, 3]],
  ['POST', [1]],
])('%s is handled again while connections to the database are lost: %p', async (method, expected) => {
  let lost = 0
  const calls: number[] = []
  const wrapper = createRouteWrapper({ ...service.services, lostConnections: () => lost })
  const route = wrapper.authenticated(null, async () => {
    calls.push(calls.length + 1)
    if (calls.length < 3) lost += 1
    return Response.json(calls.length)
  })
  const headers = { authorization: `Bearer ${tenant.key}` }
  const response = await route({
    request: new Request('http://localhost/', { method, headers }),
    params: {},
    route: '/',
  })
  expect([await response.json(), calls]).toEqual([expected.at(-1), expected])
})
