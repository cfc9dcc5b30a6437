import { type Static, Type } from '@sinclair/typebox'
import { numberedPageOf } from '../lib/numbered_page.ts'
import { envelopeOf, literals, nullable, printable, type Row } from '../lib/typebox.ts'
import { BranchName, PromptPath } from '../prompts/schema.ts'

const Action = literals(['deployed', 'pr_opened', 'pr_merged', 'pr_closed'], {
  description:
    'deployed: committed directly to the default branch; pr_opened, pr_merged, pr_closed: a pull request was created, merged, or closed without being merged',
})

export type Action = Static<typeof Action>

export const actions = Action.anyOf.map((option) => option.const)

/** The actions of entries that can be changes. */
export const liveActions: Action[] = ['deployed', 'pr_merged']

export const HistoryEntry = Type.Object(
  {
    id: Type.Integer({ format: 'int64', description: 'Identifier of the history entry' }),
    action: Action,
    user: Type.Object(
      { name: Type.String(), email: Type.String() },
      { title: 'User', description: 'Who made the change' },
    ),
    commit_sha: Type.String({ description: 'Commit hash of the change' }),
    pr_number: nullable(Type.Integer(), 'Null when no pull request is involved'),
    pr_url: nullable(Type.String(), 'Null when no pull request is involved, or it was at another host'),
    branch_name: Type.String({ description: 'Branch the change went to' }),
    created_at: Type.String({ format: 'date-time', description: 'ISO 8601 UTC timestamp' }),
    title: Type.Optional(
      nullable(
        Type.String(),
        'Subject of the commit or title of the pull request; null if not known. Pages of a history have it only with include=title.',
      ),
    ),
    authors: Type.Optional(
      Type.Array(Type.String(), {
        description: 'Names of the authors of a merged pull request, as far as known. Given with the title.',
      }),
    ),
  },
  { title: 'HistoryEntry' },
)

export type HistoryEntry = Static<typeof HistoryEntry>

/** An entry as it is stored. */
export type EntryRow = Omit<Row<typeof HistoryEntry>, 'user' | 'title' | 'authors'> & {
  user_name: string
  user_email: string
  title: string | null
  authors: string[]
}

export const showEntry = (row: EntryRow): HistoryEntry => ({
  id: row.id,
  action: row.action,
  user: { name: row.user_name, email: row.user_email },
  commit_sha: row.commit_sha,
  pr_number: row.pr_number,
  pr_url: row.pr_url,
  branch_name: row.branch_name,
  created_at: row.created_at.toISOString(),
})

export const showTitledEntry = (row: EntryRow): HistoryEntry => ({
  ...showEntry(row),
  title: row.title,
  authors: row.authors,
})

export const exampleEntry = {
  action: 'pr_merged',
  user: { name: 'Ada Example', email: 'ada@example.com' },
  commit_sha: '45c48cce2e2d7fbdea1afc51c7c6ad26b0d94e11',
  pr_number: 7,
  pr_url: 'https://github.com/example/prompts/pull/7',
  branch_name: 'main',
  created_at: '2026-11-14T23:35:00.000Z',
}

export const exampleTitledEntry = { ...exampleEntry, title: 'Greet by first name', authors: ['Ada Example'] }

/** More are left out. */
export const maxAuthors = 10

export const HistoryPage = numberedPageOf(HistoryEntry, 'HistoryPage', [{ id: 42, ...exampleEntry }])

const forPullRequests = 'Required for the pr_* actions, not allowed for deployed.'

/** Clocks differ, so the time of an entry may be this far ahead. It is then capped at now. */
export const maxAheadMs = 5 * 60_000

/** An entry as clients send it. */
export const NewHistoryEntry = Type.Object(
  {
    action: Action,
    user: Type.Object({ name: printable(200), email: printable(320) }),
    commit_sha: printable(100),
    branch_name: BranchName,
    pr_number: Type.Optional(nullable(Type.Integer({ minimum: 1, maximum: 2_147_483_647 }), forPullRequests)),
    pr_url: Type.Optional(nullable(printable(2_000), forPullRequests)),
    title: Type.Optional(nullable(printable(200), 'Subject of the commit or title of the pull request.')),
    authors: Type.Optional(
      Type.Array(printable(200), { maxItems: maxAuthors, description: 'Names of the authors of a pull request.' }),
    ),
    created_at: Type.Optional(
      Type.String({
        format: 'date-time',
        description:
          'ISO 8601 with its zone. Defaults to the time of the request. Up to five minutes in the future counts as now.',
      }),
    ),
  },
  { title: 'NewHistoryEntry', examples: [exampleTitledEntry] },
)

export type NewHistoryEntry = Static<typeof NewHistoryEntry>

export const RecordedEntry = envelopeOf(HistoryEntry, 'RecordedHistoryEntry', {
  id: 42,
  ...exampleTitledEntry,
})

/** In bytes of UTF-8. */
export const maxTextBytes = 256 * 1024

/** Whether Postgres can store the text of a prompt, and it is not too large. */
export const isStorableText = (text: string): boolean =>
  !text.includes('\0') && text.isWellFormed() && Buffer.byteLength(text) <= maxTextBytes

export const promptId = Type.String({ description: "The prompt's public ID" })

export const EntryPath = Type.Object({
  ...PromptPath.properties,
  entry_id: Type.Integer({ format: 'int64', description: 'Identifier of the history entry', examples: [42] }),
})

export const RemovedEntry = envelopeOf(Type.Object({ id: HistoryEntry.properties.id }), 'RemovedHistoryEntry', {
  id: 42,
})

export const EntriesToRemove = Type.Object(
  {
    branch: Type.Optional(BranchName),
    prompt_id: Type.Optional(promptId),
    repository: Type.Optional(Type.String({ description: 'Repository of the file, as in the link of a prompt' })),
    path: Type.Optional(Type.String({ description: 'Path of the file' })),
    dry_run: Type.Optional(Type.Boolean({ description: 'Return the number without removing anything.' })),
  },
  { title: 'EntriesToRemove', examples: [{ branch: 'warmer', dry_run: true }] },
)

export type EntriesToRemove = Static<typeof EntriesToRemove>

export const RemovedEntries = envelopeOf(
  Type.Object({ entries: Type.Integer({ description: 'The number of entries' }) }),
  'RemovedHistoryEntries',
  { entries: 2_284 },
)

export const EntryDiff = envelopeOf(
  Type.Object({
    entry: HistoryEntry,
    base: nullable(HistoryEntry, 'The entry that it is compared with; null for the first change'),
    before: nullable(Type.String(), 'Text of the base; null if it is not stored'),
    after: nullable(Type.String(), 'Text of the entry; null if it is not stored'),
    diff: nullable(Type.String(), 'Unified diff, empty for equal texts; null if a text is not stored'),
  }),
  'EntryDiff',
  {
    entry: { id: 42, ...exampleTitledEntry },
    base: null,
    before: null,
    after: 'Hello, {name}!\n',
    diff: '--- prompts/greeting.md\n+++ prompts/greeting.md\n@@ -0,0 +1,1 @@\n+Hello, {name}!\n',
  },
)
