import { expect, test } from 'bun:test'
import { createDatabase } from '../harness.ts'
import { errorLineOf, run, startServer } from '../program.ts'

test('metrics with an address of their own are served there alone, and nothing else is', async () => {
  const database = await createDatabase()
  const server = await startServer({ ...database.settings, METRICS_ADDRESS: '127.0.0.1:0' })
  const { url, metrics } = JSON.parse(server.stdout().split('\n')[0] as string)
  expect([url, new URL(metrics).pathname]).toEqual([server.url, '/metrics'])
  const answer = await fetch(metrics)
  expect([answer.status, await answer.text()]).toEqual([200, expect.stringContaining('prompt_signals_build_info{')])
  const statusOf = async (address: string) => (await fetch(address)).status
  expect(await statusOf(`${url}/metrics`)).toBe(404)
  for (const path of ['/livez', '/docs', '/api/v1/prompts/pmt_none/history']) {
    expect([path, await statusOf(new URL(path, metrics).href)]).toEqual([path, 404])
  }
  expect(await server.stop()).toBe(0)

  const taken = Bun.serve({ port: 0, hostname: '127.0.0.1', fetch: () => new Response() })
  const settings = { ...database.settings, METRICS_ADDRESS: `127.0.0.1:${taken.port}` }
  const line = errorLineOf(await run(['serve'], { settings }))
  expect(line).toStartWith(`Cannot listen on 127.0.0.1 port ${taken.port}: `)
  await taken.stop(true)
  await database.close()
})
