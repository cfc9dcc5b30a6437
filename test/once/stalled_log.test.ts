import { expect, test } from 'bun:test'
import { join } from 'node:path'
import { createFolder, eventually, PROGRAM } from '../program.ts'
import { findFreePort } from '../throwaway.ts'
import { useDatabase } from '../use.ts'

const { settings } = useDatabase()

/** More than a pipe holds. */
const logged = 1_000

test.each([
  ['on a full disk', '> /dev/full'],
  ['to a reader that has left', '> >(true)'],
  // The program itself keeps the pipe open, and never reads it.
  ['to a reader that has stalled', '0<> "$PIPE" > "$PIPE"'],
])('a service that cannot write its log %s serves, and stops when it is told to', async (_, redirection) => {
  const pipe = join(createFolder(), 'pipe')
  expect(Bun.spawnSync(['mkfifo', pipe]).exitCode).toBe(0)
  const port = await findFreePort()
  const service = Bun.spawn(['bash', '-c', `exec "$PROGRAM" serve --port ${port} ${redirection}`], {
    env: { PATH: process.env.PATH, PROGRAM, PIPE: pipe, ...settings },
    stdio: ['ignore', 'ignore', 'ignore'],
  })
  try {
    const statusOf = (path: string) =>
      fetch(`http://127.0.0.1:${port}${path}`).then(
        ({ status }) => status,
        () => 0,
      )
    await eventually(() => statusOf('/readyz'), 200)
    for (let sent = 0; sent < logged; sent++) expect(await statusOf('/api/v1/prompts')).toBe(401)
    service.kill('SIGTERM')
    expect(await Promise.race([service.exited, Bun.sleep(10_000)])).toBe(0)
  } finally {
    service.kill('SIGKILL')
  }
})
