import { showConfig } from '../config.ts'
import { build, migrations } from '../platform.ts'
import type { Command } from './command.ts'
import { forFirstCommands } from './database.ts'

const answerMs = 3_000

export const operateCommands: Record<string, Command> = {
  migrate: {
    usage: 'migrate',
    does: "brings the database to this program's schema",
    async run({ config, output }) {
      const [{ openAny }, { migrate }] = await Promise.all([import('../db/open.ts'), import('../db/migrations.ts')])
      const { db } = await openAny(config, forFirstCommands)
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
      const url = addressOf(config.HOST, config.PORT)
      const answer = await fetch(`${url}/readyz`, { signal: AbortSignal.timeout(answerMs) }).catch(() => undefined)
      output.show({ ready: answer?.ok === true })
      if (!answer) throw new Error(`Nothing answers at ${url}.`)
      if (!answer.ok) throw new Error(`The server at ${url} is not ready: ${(await answer.text()).slice(0, 200)}`)
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

function addressOf(host: string, port: number): string {
  // A server that listens on every address is asked on the loopback one.
  const address = { '0.0.0.0': '127.0.0.1', '::': '[::1]' }[host] ?? (host.includes(':') ? `[${host}]` : host)
  return `http://${address}:${port}`
}
