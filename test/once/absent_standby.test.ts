// A Postgres whose synchronous standby is away does not confirm any commit.
import { expect, test } from 'bun:test'
import { join } from 'node:path'
import postgres from 'postgres'
import { createFolder, eventually, run } from '../program.ts'
import { findOrInstall, postgresProgram } from '../programs.ts'
import { postgresRecipe } from '../services.ts'
import { startThrowaway } from '../throwaway.ts'

const PROGRAM = join(import.meta.dir, '../../dist/prompt-signals')

test('a command that waits for an absent standby says so, and on Ctrl-C what it does not know', async () => {
  const [path = ''] = await findOrInstall([postgresProgram])
  const server = await startThrowaway((folder) => postgresRecipe(path, folder))
  const admin = postgres(server.url, { max: 1 })
  try {
    const settings = { DATABASE_URL: server.url }
    expect((await run(['migrate'], { settings })).status).toBe(0)
    await admin.unsafe(`alter system set synchronous_standby_names = 'absent'`)
    await admin`select pg_reload_conf()`
    const child = Bun.spawn([PROGRAM, 'orgs', 'create', '--name', 'A', '--plan', 'free'], {
      cwd: createFolder(),
      env: { PATH: process.env.PATH, ...settings },
      stdio: ['ignore', 'pipe', 'pipe'],
    })
    let stderr = ''
    const read = (async () => {
      for await (const chunk of child.stderr) stderr += new TextDecoder().decode(chunk)
    })()
    const waiting =
      'prompt-signals: Still waiting for the database to hear from its synchronous standby ' +
      '(synchronous_standby_names). Ctrl-C ends the waiting.\n'
    await eventually(() => stderr, waiting, 30_000)
    child.kill('SIGINT')
    expect(await child.exited).toBe(130)
    await read
    expect(stderr.slice(waiting.length)).toBe(
      'prompt-signals: Interrupted before the database had answered: the change may or may not have been made. ' +
        'To be sure, run: prompt-signals orgs list\n',
    )
    expect(await child.stdout.text()).toBe('')
  } finally {
    await admin.end({ timeout: 1 })
    await server.stop()
  }
})
