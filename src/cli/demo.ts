import type { Clock } from '../clock.ts'
import type { Config } from '../config.ts'
import type { Db } from '../db/client.ts'
import { recordEntry } from '../history/record.ts'
import { createKey } from '../keys/manage.ts'
import { maxPageSize } from '../lib/params.ts'
import { presets } from '../lib/scopes.ts'
import { createOrganisation, listOrganisations, type Owner, requireOrganisation } from '../orgs/manage.ts'
import { listPrompts, requirePrompt } from '../prompts/find.ts'
import { createPrompt } from '../prompts/manage.ts'
import { createPastRecorder, signalsPerWrite } from '../signals/import.ts'
import type { Context } from './command.ts'
import { generateDemoData } from './demo_data.ts'
import { linkTo, programFor } from './init.ts'

/** Fills an empty embedded database and prints requests to try. With data in it, prints a command that creates a key. */
export async function offerDemo({ config, clock, output }: Context, db: Db, url: string): Promise<void> {
  if (config.DATABASE_URL) return output.say('--demo does nothing here: it works only with the embedded database.')
  const [existing] = await listOrganisations(db, clock)
  if (existing) return output.say(await describeExisting(db, config, url, existing.id))
  const { id: org } = await createOrganisation(db, clock, { name: 'Demo', plan: 'team', monthlyLimit: null })
  const owner = await requireOrganisation(db, org)
  const { key } = await createKey(db, clock, owner, { name: 'demo', scopes: presets.admin })
  const [prompt] = await createDemoPrompts(db, clock, owner)

  output.say(`
The demo organisation ${org} has a key that may do everything, and four prompts with six weeks of history and signals.
${config.CONSOLE === 'on' ? `\nSee it: ${linkTo(config.PUBLIC_URL ?? url, key)}\n` : ''}
Try it:

${requestsTo(url, prompt as string, key)}`)
}

export async function createDemoPrompts(db: Db, clock: Clock, owner: Owner): Promise<string[]> {
  const now = clock.now()
  const ids: string[] = []
  for (const { name, history, signals } of generateDemoData(now)) {
    // The documents name these ids.
    const { id } = await createPrompt(db, clock, owner, { name, id: `pmt_${name}` })
    const prompt = await requirePrompt(db.sql, id)
    for (const entry of history) await recordEntry(db, clock, prompt, entry)
    const record = createPastRecorder(db, now, prompt)
    for (let start = 0; start < signals.length; start += signalsPerWrite) {
      await record(signals.slice(start, start + signalsPerWrite))
    }
    ids.push(id)
  }
  return ids
}

async function describeExisting(db: Db, config: Config, url: string, org: string): Promise<string> {
  const { organisationId } = await requireOrganisation(db, org)
  const page = { limit: maxPageSize, cursor: null }
  const { data } = await listPrompts(db, organisationId, page, { search: null, archived: 'all' })
  // The one that the demo created first.
  const prompt = data.at(-1)
  const program = programFor(config, new URL(url).port)
  const key = `$(${program} keys create --org ${org} --json | sed 's/.*"key":"\\([^"]*\\)".*/\\1/')`
  return `
${config.DATA_DIR} already has data, so no demo data was added. Keys are not shown again.
${config.CONSOLE === 'on' ? `\nPrint a sign-in link:\n\n${program} console --org ${org} --admin\n` : ''}
Create a key and try it:

${requestsTo(url, prompt?.id ?? 'pmt_…', key)}`
}

/** Lines for a shell, with the variables that the documents use. `key` may be a command that prints it. */
function requestsTo(url: string, prompt: string, key: string): string {
  return `export URL=${url} PROMPT=${prompt} KEY=${key}

# the effect of the last change
curl -H "Authorization: Bearer $KEY" "$URL/api/v1/prompts/$PROMPT/impact?limit=1"

# who changed the prompt
curl -H "Authorization: Bearer $KEY" "$URL/api/v1/prompts/$PROMPT/history?limit=2"

# record a signal
curl -X POST -H "Authorization: Bearer $KEY" -H 'Content-Type: application/json' \\
  -d '{"value":"positive","metadata":{"session":"a81c"}}' "$URL/api/v1/prompts/$PROMPT/signals"

Documentation: ${url}/docs
`
}
