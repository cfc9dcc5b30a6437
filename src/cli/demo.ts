import type { Clock } from '../clock.ts'
import type { Config } from '../config.ts'
import type { Db } from '../db/client.ts'
import { recordHistory } from '../history/record.ts'
import { createKey } from '../keys/manage.ts'
import { createOrganisation, listOrganisations } from '../orgs/manage.ts'
import { programName } from '../platform.ts'
import { createPrompt } from '../prompts/manage.ts'
import type { Output } from './output.ts'

type Surroundings = { db: Db; config: Config; clock: Clock; output: Output; url: string }

const hourMs = 3_600_000

/** Fills an empty embedded database with something to look at, and says how. Never touches one that is in use. */
export async function offerDemo({ db, config, clock, output, url }: Surroundings): Promise<void> {
  if (config.DATABASE_URL) return output.say('--demo does nothing here: it is for the embedded database alone.')
  const [existing] = await listOrganisations(db, clock)
  if (existing) {
    return output.say(
      `There is data in ${config.DATA_DIR} already, so no demo was made. ` +
        `For a new key: ${programName} keys create --org ${existing.id}`,
    )
  }
  const { id: org } = await createOrganisation(db, clock, { name: 'Demo', plan: 'free', monthlyLimit: null })
  const { key } = await createKey(db, clock, { org, name: 'demo', expiresAt: null })
  const { id: prompt } = await createPrompt(db, clock, { org, name: 'greeting', id: null })
  for (const entry of demoHistory(clock.now())) await recordHistory(db, clock, prompt, entry)

  const address = `${url}/api/v1/prompts/${prompt}`
  output.say(`
The demo organisation ${org} has a key and a prompt with some history. Try it:

curl -H 'Authorization: Bearer ${key}' '${address}/history?limit=2'

curl -X POST -H 'Authorization: Bearer ${key}' -H 'Content-Type: application/json' \\
  -d '{"value":"positive","metadata":{"session":"a81c"}}' '${address}/signals'

Documentation: ${url}/docs
`)
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
