// Changes and signals of known times.
import { entry, type TestService } from '../service.ts'
import type { Sent } from './rule.ts'

/** Inserts signals of any time, as recording them over time would have. */
export async function addSignals(service: TestService, prompt: string, signals: Sent[]): Promise<void> {
  const rows = signals.map(({ value, commit, at }) => ({
    value,
    at,
    metadata: commit === undefined ? { session: 'a' } : { commit_sha: commit },
  }))
  await service.services.db.sql`
    insert into signals (organisation_id, prompt_id, value, metadata, created_at)
    select p.organisation_id, p.id, g.value, g.metadata, g.at
    from prompts p, json_to_recordset(${JSON.stringify(rows)}::text::json) g (value text, metadata jsonb, at timestamptz)
    where p.public_id = ${prompt}`
}

/** Rolls up the next signals of a prompt; all of them by default. */
export async function rollUp(service: TestService, prompt: string, number = 1_000_000): Promise<void> {
  await service.services.db.sql`
    select roll_up_signals(p.id, ${number}::integer) from prompts p where p.public_id = ${prompt}`
}

export const deployed = (commit: string, at: string) => entry({ commit_sha: commit, created_at: at })

export const merged = (commit: string, at: string, number: number) =>
  entry({
    action: 'pr_merged',
    commit_sha: commit,
    created_at: at,
    pr_number: number,
    pr_url: `https://example.com/${number}`,
  })
