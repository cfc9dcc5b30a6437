// Changes and signals of known times, and which belong together.
import { entry, type TestService } from '../service.ts'

export type Sent = { value: 'positive' | 'negative'; commit?: unknown; at: string }
export type Change = { id: number; commit_sha: string; created_at: string }

export const signals = (positive: number, negative: number, sent: Omit<Sent, 'value'>): Sent[] => [
  ...Array.from({ length: positive }, () => ({ ...sent, value: 'positive' as const })),
  ...Array.from({ length: negative }, () => ({ ...sent, value: 'negative' as const })),
]

/** The same on as many days: each next signal is a day later than the one before, the last day is followed by the first. */
export const onDays = (days: number, sent: Sent[]): Sent[] =>
  sent.map((signal, index) => ({
    ...signal,
    at: new Date(Date.parse(signal.at) + (index % days) * 86_400_000).toISOString(),
  }))

export const metadataOf = (commit: unknown) => (commit === undefined ? { session: 'a' } : { commit_sha: commit })

/** Inserts signals of any time, as recording them over time would have. */
export async function addSignals(service: TestService, prompt: string, signals: Sent[]): Promise<void> {
  const rows = signals.map(({ value, commit, at }) => ({
    value,
    at,
    metadata: metadataOf(commit),
  }))
  await service.services.db.sql`
    insert into signals (organisation_id, prompt_id, value, metadata, created_at)
    select p.organisation_id, p.id, g.value, g.metadata, g.at
    from prompts p, json_to_recordset(${JSON.stringify(rows)}::text::json) g (value text, metadata jsonb, at timestamptz)
    where p.public_id = ${prompt}`
}

export async function rollUp(service: TestService, prompt: string, number = 1_000_000): Promise<void> {
  await service.services.db.sql`
    select roll_up_signals(p.organisation_id, p.id, ${number}::integer) from prompts p where p.public_id = ${prompt}`
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

const isHash = (text: string): boolean => /^[0-9a-f]{7,64}$/.test(text)

/** Digits alone are a hash only in full length. */
const isShortOf = (short: string, long: string): boolean =>
  isHash(short) && isHash(long) && long.startsWith(short) && (/[a-f]/.test(long) || long.length === 40)

/** The change that a signal belongs to, as documented, of those that went live, oldest first; undefined for none. */
export function changeOf(changes: Change[], { commit, at }: Sent): { change: Change; isNamed: boolean } | undefined {
  if (typeof commit === 'string' && commit !== '') {
    const text = commit.toLowerCase()
    const commits = [...new Set(changes.map(({ commit_sha }) => commit_sha.toLowerCase()))]
    const fitting = commits.filter((known) => isShortOf(known, text) || isShortOf(text, known))
    const named = commits.includes(text) ? text : fitting.length === 1 ? fitting[0] : undefined
    const own = changes.filter(({ commit_sha }) => commit_sha.toLowerCase() === named)
    const change = own.findLast(({ created_at }) => created_at <= at) ?? own[0]
    if (change) return { change, isNamed: true }
  }
  const change = changes.findLast(({ created_at }) => created_at <= at)
  return change && { change, isNamed: false }
}
