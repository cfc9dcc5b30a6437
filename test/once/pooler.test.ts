// A connection pooler that mixes up prepared statements gives wrong answers, so it is noticed at the start.
import { beforeAll, expect, test } from 'bun:test'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import postgres from 'postgres'
import { errorLineOf, run } from '../program.ts'
import { findOrInstall, pgbouncerProgram } from '../programs.ts'
import { withPostgres } from '../services.ts'
import { urlOfDatabase } from '../templates.ts'
import { type Recipe, startThrowaway } from '../throwaway.ts'
import { useDatabase } from '../use.ts'

const database = useDatabase()
let program: string

beforeAll(async () => {
  ;[program = ''] = await findOrInstall([pgbouncerProgram])
})

/** From 1.21 on, unless it is switched off; older ones do not know the setting. */
function knowsPreparedStatements(): boolean {
  const { stdout } = Bun.spawnSync([program, '--version'])
  return Number(/PgBouncer 1\.(\d+)/.exec(stdout.toString())?.[1]) >= 21
}

function pgbouncerRecipe(folder: string, mode: string, poolSize: number): Recipe {
  const { hostname, port, username } = new URL(database.settings.DATABASE_URL as string)
  const file = join(folder, 'pgbouncer.ini')
  return {
    name: 'PgBouncer',
    command(listenPort) {
      const lines = [
        ...['[databases]', `* = host=${hostname} port=${port} user=${username}`, '[pgbouncer]'],
        ...['listen_addr = 127.0.0.1', `listen_port = ${listenPort}`, `unix_socket_dir = ${folder}`],
        ...['auth_type = any', `admin_users = ${username}`, 'ignore_startup_parameters = statement_timeout'],
        ...[`pool_mode = ${mode}`, `default_pool_size = ${poolSize}`],
        ...(knowsPreparedStatements() ? ['max_prepared_statements = 0'] : []),
      ]
      writeFileSync(file, `${lines.join('\n')}\n`)
      return [program, file]
    },
    url: (listenPort) => `postgres://${username}@127.0.0.1:${listenPort}/pgbouncer`,
    async folderOf(url) {
      const sql = postgres(url, { max: 1, connect_timeout: 2, fetch_types: false })
      try {
        const rows = await sql.unsafe('show config')
        return rows.find(({ key }) => key === 'unix_socket_dir')?.value
      } finally {
        await sql.end({ timeout: 0 })
      }
    },
    stopSignal: 'SIGINT',
  }
}

async function withPgbouncer(mode: string, poolSize: number, use: (url: string) => Promise<void>): Promise<void> {
  const server = await startThrowaway((folder) => pgbouncerRecipe(folder, mode, poolSize))
  const name = new URL(database.settings.DATABASE_URL as string).pathname.slice(1)
  await use(urlOfDatabase(server.url, name)).finally(server.stop)
}

const list = (url: string) => run(['orgs', 'list'], { settings: { DATABASE_URL: url } })

test('PgBouncer in transaction mode without a regard to prepared statements is rejected, with the remedy', async () => {
  await withPgbouncer('transaction', 5, async (url) => {
    const { host } = new URL(url)
    const settings = { DATABASE_URL: url, LOG_LEVEL: 'error' }
    for (const command of [['serve'], ['orgs', 'list']]) {
      expect(errorLineOf(await run(command, { settings }))).toBe(
        `The database at ${host} cannot be used: the connection pooler in front of it mixes up prepared statements. Use PgBouncer 1.21 or newer with max_prepared_statements above 0, or put ?prepare=false at the end of DATABASE_URL.`,
      )
    }
    expect((await list(`${url}?prepare=false`)).status).toBe(0)
  })
})

test.each([
  ['session', 5],
  ['transaction', 1],
])('PgBouncer in %s mode with %d connections, which mixes nothing up, is used', async (mode, poolSize) => {
  await withPgbouncer(mode, poolSize, async (url) => {
    expect(await list(url)).toMatchObject({ status: 0, stderr: '' })
  })
})

test('a pooler that drops a setting which the statements rely on is rejected, where the server has another', async () => {
  const { DATABASE_URL = '' } = database.settings
  const name = new URL(DATABASE_URL).pathname.slice(1)
  await withPostgres(DATABASE_URL, (sql) => sql`alter database ${sql(name)} set array_nulls = off`)
  expect(await list(DATABASE_URL)).toMatchObject({ status: 0, stderr: '' })
  await withPgbouncer('session', 5, async (url) => {
    expect(errorLineOf(await list(url))).toBe(
      `The database at ${new URL(url).host} cannot be used: array_nulls is 'off' there. Run: alter role USER set array_nulls = 'on'`,
    )
  })
})
