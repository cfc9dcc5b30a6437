import { expect, test } from 'bun:test'
import { useProgram } from '../use.ts'

const { server } = useProgram(() => ({ METRICS_ADDRESS: '127.0.0.1:0', CONSOLE: 'off' }))

const statusOf = async (address: string) => (await fetch(address)).status

test('metrics with a separate address are served only there, and nothing else is', async () => {
  const { url, metrics } = JSON.parse(server.stdout().split('\n')[0] as string)
  expect([url, new URL(metrics).pathname]).toEqual([server.url, '/metrics'])
  const answer = await fetch(metrics)
  expect([answer.status, await answer.text()]).toEqual([200, expect.stringContaining('prompt_signals_build_info{')])
  expect(await statusOf(`${url}/metrics`)).toBe(404)
  for (const path of ['/livez', '/docs', '/api/v1/prompts/pmt_none/history']) {
    expect([path, await statusOf(new URL(path, metrics).href)]).toEqual([path, 404])
  }
})

test('without the console, its page leads to the documentation', async () => {
  const answer = await fetch(`${server.url}/`, { redirect: 'manual' })
  expect([answer.status, answer.headers.get('location')]).toEqual([302, 'docs'])
})
