import type { Clock } from '../clock.ts'
import { type Config, settings } from '../config.ts'
import type { Db } from '../db/client.ts'
import { recordHistory } from '../history/record.ts'
import { createKey } from '../keys/manage.ts'
import { createOrganisation, listOrganisations } from '../orgs/manage.ts'
import { programName } from '../platform.ts'
import { createPrompt, listAllPrompts } from '../prompts/manage.ts'
import type { Output } from './output.ts'

type Start = { db: Db; config: Config; clock: Clock; output: Output; url: string }

const hourMs = 3_600_000

/**
 * Fills an empty embedded database with an organisation, a key and a prompt, and prints requests to try. A database with
 * data in it is left as it is: the same requests are printed, with a command that makes the key.
 */
export async function offerDemo({ db, config, clock, output, url }: Start): Promise<void> {
  if (config.DATABASE_URL) return output.say('--demo does nothing here: it is for the embedded database alone.')
  const [existing] = await listOrganisations(db, clock)
  if (existing) return output.say(await describeExisting(db, config, url, existing.id))
  const { id: org } = await createOrganisation(db, clock, { name: 'Demo', plan: 'free', monthlyLimit: null })
  const { key } = await createKey(db, clock, { org, name: 'demo', expiresAt: null })
  const { id: prompt } = await createPrompt(db, clock, { org, name: 'greeting', id: null })
  for (const entry of demoHistory(clock.now())) await recordHistory(db, clock, prompt, entry)

  output.say(`
The demo organisation ${org} has a key and a prompt with some history. Try it:

${requestsTo(url, prompt, `'Authorization: Bearer ${key}'`)}`)
}

async function describeExisting(db: Db, config: Config, url: string, org: string): Promise<string> {
  const [prompt] = await listAllPrompts(db, org)
  const program = `${config.DATA_DIR === settings.DATA_DIR.fallback ? '' : `DATA_DIR='${config.DATA_DIR}' `}${programName}`
  return `
There is data in ${config.DATA_DIR} already, so no demo was made. Keys are not shown again; this makes one to try it with:

KEY=$(${program} keys create --org ${org} --json | sed 's/.*"key":"\\([^"]*\\)".*/\\1/')

${requestsTo(url, prompt?.id ?? 'pmt_…', '"Authorization: Bearer $KEY"')}`
}

/** The header comes as it is written in a shell. */
function requestsTo(url: string, prompt: string, header: string): string {
  const address = `${url}/api/v1/prompts/${prompt}`
  return `curl -H ${header} '${address}/history?limit=2'

curl -X POST -H ${header} -H 'Content-Type: application/json' \\
  -d '{"value":"positive","metadata":{"session":"a81c"}}' '${address}/signals'

Documentation: ${url}/docs
`
}

function demoHistory(now: Date) {
  const user = { name: 'Ada Example', email: 'ada@example.com' }
  const pr = { pr_number: 7, pr_url: 'https://github.com/example/prompts/pull/7' }
  return [
    { action: 'deployed', commit_sha: '8f14e45fceea167a5a36dedd4bea2543f1c0a9d2', branch_name: 'main' },
    { action: 'pr_opened', commit_sha: 'c9f0f895fb98ab9159f51fd0297e236d5e1b7c33', branch_name: 'warmer', ...pr },
    { action: 'pr_merged', commit_sha: '45c48cce2e2d7fbdea1afc51c7c6ad26b0d94e11', branch_name: 'main', ...pr },
  ].map((entry, index) => ({
    ...entry,
    user,
    created_at: new Date(now.getTime() - (3 - index) * hourMs).toISOString(),
  }))
}
