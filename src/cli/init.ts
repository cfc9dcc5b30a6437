import { type Config, settings } from '../config.ts'
import { createKey } from '../keys/manage.ts'
import { presets } from '../lib/scopes.ts'
import { createOrganisation, listOrganisations } from '../orgs/manage.ts'
import { programName } from '../platform.ts'
import { createPrompt } from '../prompts/manage.ts'
import { linkTo, serviceUrlOf } from './console.ts'
import { onDatabase } from './database.ts'

export const commands = onDatabase([
  {
    usage: 'init [--name N]',
    description:
      'creates the first organisation with an admin key and a prompt, and prints a sign-in link and requests',
    database: 'created',
    verifyWith: 'orgs list',
    async run({ db, clock, config, args, output }) {
      const url = serviceUrlOf(config)
      const [existing] = await listOrganisations(db, clock)
      if (existing) {
        const command = `prompt-signals console --org ${existing.id} --admin`
        throw new Error(`The database already has an organisation. For a sign-in link, run: ${command}`)
      }
      const name = args.text('name') ?? 'My organisation'
      const { id: org } = await createOrganisation(db, clock, { name, plan: 'business', monthlyLimit: null })
      const { key } = await createKey(db, clock, { org, name: 'admin', scopes: presets.admin })
      const { id: prompt } = await createPrompt(db, clock, { org, name: 'first prompt', id: null })
      const link = config.CONSOLE === 'on' ? linkTo(url, key) : null
      output.show({ org, prompt, key, link })
      if (args.options.json) return
      output.say(`
Keep the key: it is not shown again. Start the service, unless it runs: ${programFor(config)} serve

Then record a change, record a signal, and see the impact:

${requestsTo(`${url}/api/v1/prompts/${prompt}`, key)}`)
    },
  },
])

/** Three requests, each on one line. */
function requestsTo(address: string, key: string): string {
  const post = `curl -X POST -H 'Authorization: Bearer ${key}' -H 'Content-Type: application/json'`
  const commit = '6f2b8f7a1c0de5b94d3a7e60c21f98a4b5d3e7c1'
  const user = { name: 'Ada Example', email: 'ada@example.com' }
  const change = { action: 'deployed', user, commit_sha: commit, branch_name: 'main' }
  return `${post} -d '${JSON.stringify(change)}' '${address}/history'
${post} -d '${JSON.stringify({ value: 'positive', metadata: { commit_sha: commit } })}' '${address}/signals'
curl -H 'Authorization: Bearer ${key}' '${address}/impact'`
}

/** The program with the settings that a shell needs to run a command on the same embedded database. */
export function programFor({ DATABASE_URL, DATA_DIR, PORT }: Config, port = String(PORT)): string {
  const changed = [
    ...(DATABASE_URL || DATA_DIR === settings.DATA_DIR.fallback ? [] : [`DATA_DIR='${DATA_DIR}'`]),
    ...(port === settings.PORT.fallback ? [] : [`PORT=${port}`]),
  ]
  return [...changed, programName].join(' ')
}
