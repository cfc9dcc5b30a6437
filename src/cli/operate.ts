import { get as getPlain } from 'node:http'
import { get as getEncrypted } from 'node:https'
import { text } from 'node:stream/consumers'
import { localUrlOf, showConfig } from '../config.ts'
import { build, migrations } from '../platform.ts'
import { backUpFor } from './before_migration.ts'
import type { Command } from './command.ts'
import { onDatabase } from './database.ts'

export const commands: Command[] = [
  ...onDatabase([
    {
      usage: 'migrate [--dry-run]',
      description: 'migrates the database to the schema of this program; --dry-run shows both versions',
      database: 'any schema',
      async run(context) {
        const { db, args, output } = context
        const { migrate, readKnownVersion } = await import('../db/migrations.ts')
        if (args.options['dry-run']) {
          const version = await readKnownVersion(db.sql, migrations)
          const missing = migrations.slice(version).map(({ name }) => name)
          return output.show({ would_apply: missing, database: version, program: migrations.length })
        }
        output.show(await migrate(db, migrations, backUpFor(context)))
      },
    },
  ]),
  {
    usage: 'healthcheck [--live]',
    description: 'checks that the running server is ready; --live checks only that it is alive, without its database',
    async run({ config, args, output, interruption }) {
      const url = localUrlOf(config)
      const [path, word] = args.options.live ? ['livez', 'live'] : ['readyz', 'ready']
      const signal = AbortSignal.any([AbortSignal.timeout(3_000), interruption.signal])
      const answer = await ask(`${url}/${path}`, signal).catch(() => undefined)
      interruption.signal.throwIfAborted()
      output.show({ [word]: answer?.status === 200 })
      if (!answer) throw new Error(`No server answers at ${url}.`)
      if (answer.status !== 200) throw new Error(`The server at ${url} is not ${word}: ${answer.text.slice(0, 200)}`)
    },
  },
  {
    usage: 'config',
    description: 'shows the current settings, without secrets',
    run: async ({ output }) => output.show(showConfig()),
  },
  {
    usage: 'version',
    description: 'shows the version of this build',
    run: async ({ output }) => output.show(build),
  },
]

/** Does not verify the certificate, which names the public host rather than this address. No secret is sent. */
function ask(url: string, signal: AbortSignal): Promise<{ status: number | undefined; text: string }> {
  return new Promise((resolve, reject) => {
    const get = url.startsWith('https:') ? getEncrypted : getPlain
    const request = get(url, { signal, rejectUnauthorized: false, agent: false }, (response) => {
      text(response).then((body) => resolve({ status: response.statusCode, text: body }), reject)
    })
    request.on('error', reject)
  })
}
