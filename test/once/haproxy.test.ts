import { afterAll, expect, test } from 'bun:test'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { sendSignal } from '../client.ts'
import { createDatabaseWithTenant } from '../harness.ts'
import { createFolder, createOperator, eventually, startServer } from '../program.ts'
import { findFreePort } from '../throwaway.ts'

const database = await createDatabaseWithTenant()
const settings = { ...database.settings, DRAIN_SECONDS: '3', TRUSTED_PROXIES: '127.0.0.1' }
const servers = await Promise.all([startServer(settings), startServer(settings)])
const url = `http://127.0.0.1:${await findFreePort()}`
const file = join(createFolder(), 'haproxy.cfg')
writeFileSync(
  file,
  readFileSync(join(import.meta.dir, '../../deploy/haproxy.cfg'), 'utf8')
    .replace('bind :80', `bind ${new URL(url).host}`)
    .replace('127.0.0.1:3000', new URL(servers[0].url).host)
    .replace('127.0.0.1:3001', new URL(servers[1].url).host),
)
const haproxy = Bun.spawn([process.env.HAPROXY_PATH ?? '', '-db', '-f', file], {
  stdio: ['ignore', 'ignore', 'inherit'],
})
afterAll(async () => {
  haproxy.kill('SIGKILL')
  await haproxy.exited
  for (const server of servers) await server.kill()
  await database.close()
})

test('behind deploy/haproxy.cfg a replica that stops loses no request', async () => {
  await eventually(async () => (await fetch(`${url}/readyz`).catch(() => undefined))?.status, 200)
  let [isOver, sent] = [false, 0]
  const statuses = new Set<number>()
  const keepPosting = async () => {
    while (!isOver) {
      sent += 1
      statuses.add((await sendSignal(url, database.tenant)).status)
    }
  }
  const callers = Promise.all(Array.from({ length: 8 }, keepPosting))
  await eventually(() => sent > 100, true)
  expect(await servers[0].stop()).toBe(0)
  const sentBefore = sent
  await eventually(() => sent > sentBefore + 100, true)
  isOver = true
  await callers
  expect([...statuses]).toEqual([201])
  expect(await createOperator(database.settings).one('orgs', 'list')).toMatchObject({ used: sent })
})
