import { showConfig } from '../config.ts'
import { build, migrations } from '../platform.ts'
import type { Command } from './command.ts'
import { forCommands } from './database.ts'

const answerMs = 3_000

export const operateCommands: Record<string, Command> = {
  migrate: {
    usage: 'migrate',
    does: "brings the database to this program's schema",
    async run({ config, output }) {
      const [{ openAny }, { migrate }] = await Promise.all([import('../db/open.ts'), import('../db/migrations.ts')])
      const { db } = await openAny(config, forCommands)
      try {
        output.show(await migrate(db, migrations))
      } finally {
        await db.close()
      }
    },
  },
  healthcheck: {
    usage: 'healthcheck',
    does: 'asks the running server whether it is ready',
    async run({ config, output }) {
      const ready = await isReady(config.HOST, config.PORT)
      output.show({ ready })
      if (!ready) throw new Error('The server is not ready.')
    },
  },
  config: {
    usage: 'config',
    does: 'shows the settings in force, without passwords',
    async run({ output }) {
      output.show(showConfig())
    },
  },
  version: {
    usage: 'version',
    does: 'says which build this is',
    async run({ output }) {
      output.show(build)
    },
  },
}

async function isReady(host: string, port: number): Promise<boolean> {
  // A server that listens on every address is asked on the loopback one.
  const address = { '0.0.0.0': '127.0.0.1', '::': '[::1]' }[host] ?? (host.includes(':') ? `[${host}]` : host)
  try {
    const answer = await fetch(`http://${address}:${port}/readyz`, { signal: AbortSignal.timeout(answerMs) })
    return answer.ok
  } catch {
    return false
  }
}
