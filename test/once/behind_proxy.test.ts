// Whose address a caller has who comes through nginx, and who does not.
import { afterAll, beforeAll, expect, test } from 'bun:test'
import { request } from 'node:http'
import { startNginx } from '../nginx.ts'
import { eventually } from '../program.ts'
import { findFreePort } from '../throwaway.ts'
import { useProgram } from '../use.ts'

const perHour = 3

let nginx: Awaited<ReturnType<typeof startNginx>>
let ports: { nginx: number; service: number }

afterAll(() => nginx?.stop())
const limits = { TRUSTED_PROXIES: '127.0.0.1, ::1', RATE_LIMIT_PER_ADDRESS: `${perHour}/h` }
const { server } = useProgram(() => ({ ...limits, HOST: '0.0.0.0' }))

beforeAll(async () => {
  ports = { nginx: await findFreePort(), service: Number(new URL(server.url).port) }
  nginx = await startNginx(`http://127.0.0.1:${ports.service}`, `127.0.0.1:${ports.nginx}`)
  await eventually(() => statusOf('nginx', '127.0.0.1', '/livez'), 200, 20_000)
})

/** The status of an answer to a caller at this address of the machine; 0 when nobody listens. */
function statusOf(to: 'nginx' | 'service', from: string, path = '/api/v1/keys', forwarded?: string): Promise<number> {
  const headers = forwarded === undefined ? {} : { 'x-forwarded-for': forwarded }
  return new Promise((resolve) => {
    const asked = request({ host: '127.0.0.1', port: ports[to], localAddress: from, path, headers, agent: false })
    asked.on('response', (response) => {
      response.resume()
      resolve(response.statusCode ?? 0)
    })
    asked.on('error', () => resolve(0))
    asked.end()
  })
}

async function statusesOf(times: number, ask: (nth: number) => Promise<number>): Promise<number[]> {
  const statuses: number[] = []
  for (let nth = 1; nth <= times; nth += 1) statuses.push(await ask(nth))
  return statuses
}

test('each caller behind nginx is counted alone, whatever it says of itself', async () => {
  expect(await statusesOf(perHour + 1, () => statusOf('nginx', '127.0.0.2'))).toEqual([401, 401, 401, 429])
  // The header that it sends stands before what nginx adds.
  expect(await statusOf('nginx', '127.0.0.2', '/api/v1/keys', '198.51.100.1')).toBe(429)
  expect(await statusOf('nginx', '127.0.0.2', '/api/v1/keys', '127.0.0.1, unknown')).toBe(429)
  expect(await statusOf('nginx', '127.0.0.3')).toBe(401)
  expect(await statusOf('nginx', '127.0.0.2', '/livez')).toBe(200)
})

test('a caller who goes past nginx cannot choose an address', async () => {
  const ask = (nth: number) => statusOf('service', '127.0.0.4', '/api/v1/keys', `198.51.100.${nth}`)
  expect(await statusesOf(perHour + 1, ask)).toEqual([401, 401, 401, 429])
})

test('the log holds no address of a caller', () => {
  expect(server.stdout()).not.toMatch(/127\.0\.0\.[2-4]|198\.51\.100/)
})
