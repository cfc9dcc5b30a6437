import { type Config, localUrlOf, settings } from '../config.ts'
import { createKey } from '../keys/manage.ts'
import { presets } from '../lib/scopes.ts'
import { requireName } from '../lib/texts.ts'
import { createOrganisation, listOrganisations, requireOrganisation } from '../orgs/manage.ts'
import { programName } from '../platform.ts'
import { createPrompt } from '../prompts/manage.ts'
import { onDatabase } from './database.ts'

const readingScopes = presets.admin.filter((scope) => scope.endsWith(':read'))

export const commands = onDatabase([
  {
    usage: 'init [--name N] [--prompt N]',
    description:
      'creates the first organisation with an admin key, and prints a sign-in link and the command that brings prompts',
    database: 'created',
    async run({ db, clock, config, args, output }) {
      const url = serviceUrlOf(config)
      const [existing] = await listOrganisations(db, clock)
      if (existing) {
        const command = `prompt-signals console --org ${existing.id} --admin`
        throw new Error(`The database already has an organisation. For a sign-in link, run: ${command}`)
      }
      const name = args.text('name') ?? 'My organisation'
      const promptName = args.text('prompt')
      // A wrong name must not leave an organisation behind whose key nobody has seen.
      if (promptName !== null) requireName(promptName, '/prompt')
      const { id: org } = await createOrganisation(db, clock, { name, plan: 'business', monthlyLimit: null })
      const owner = await requireOrganisation(db, org)
      const { key } = await createKey(db, clock, owner, { name: 'admin', scopes: presets.admin })
      const prompt = promptName === null ? null : (await createPrompt(db, clock, owner, { name: promptName })).id
      const link = config.CONSOLE === 'on' ? linkTo(url, key) : null
      output.show({ org, ...(prompt !== null || args.options.json ? { prompt } : {}), key, link })
      if (args.options.json) return
      const program = programFor(config)
      output.say(`
Keep the key: it is not shown again. Start the service, unless it runs: ${program} serve

Bring your prompts from git, with their history:

${program} sync CLONE --org ${org} --create 'prompts/**/*.md'`)
      if (prompt === null) return
      output.say(`
Record a change, record a signal, and see the impact:

${requestsTo(`${url}/api/v1/prompts/${prompt}`, key)}`)
    },
  },
  {
    usage: 'console --org ORG [--admin]',
    description:
      'prints a sign-in link for the console, with a read-only key that expires in 12 hours; --admin allows changes',
    async run({ db, clock, config, args, output }) {
      if (config.CONSOLE === 'off') throw new Error('The console is turned off: CONSOLE is off.')
      const url = serviceUrlOf(config)
      const expires_at = new Date(clock.now().getTime() + 12 * 3_600_000)
      const owner = await requireOrganisation(db, args.required('org'))
      const granted = args.options.admin ? presets.admin : readingScopes
      const { id, key } = await createKey(db, clock, owner, { name: 'console', scopes: granted, expires_at })
      output.show({ link: linkTo(url, key), key: id, expires_at })
      output.say('Anyone with the link is signed in: treat it like a password.')
    },
  },
])

/** A link that opens the console signed in. The part after # stays in the browser: no server and no log sees it. */
export const linkTo = (url: string, key: string): string => `${url}/#key=${key}`

function serviceUrlOf(config: Config): string {
  if (config.PUBLIC_URL) return config.PUBLIC_URL
  if (config.PORT === 0) throw new Error('Set PUBLIC_URL or PORT: with PORT=0 the URL of the service is unknown.')
  return localUrlOf(config)
}

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
