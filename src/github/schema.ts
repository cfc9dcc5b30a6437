// The fields of GitHub's payloads that are used; the payloads have far more.
import { createHash } from 'node:crypto'
import { type Static, type TSchema, Type } from '@sinclair/typebox'
import { parseRepository } from '../lib/repository_links.ts'
import { parseInstant, storableOrUndefined } from '../lib/times.ts'
import { envelopeOf, nullable } from '../lib/typebox.ts'

/** GitHub omits unknown fields or sends null. */
const maybe = <S extends TSchema>(schema: S) => Type.Optional(Type.Union([schema, Type.Null()]))

const text = maybe(Type.String())
/** Without control characters, because Postgres stores no NUL. */
const name = Type.String({ pattern: '^[^\\u0000-\\u001f\\u007f]*$' })
/** GitHub omits the list if it has not compared the commit with its parent. */
const files = maybe(Type.Array(Type.String()))
const id = Type.Integer({ minimum: 1, maximum: Number.MAX_SAFE_INTEGER })
/** Seconds since 1970 in a push, a string elsewhere. */
const time = maybe(Type.Union([Type.Integer(), Type.String()]))

const Repository = Type.Object({
  id,
  html_url: text,
  full_name: name,
  default_branch: Type.String(),
  pushed_at: time,
  updated_at: time,
})

export type Repository = Static<typeof Repository>

// GitHub Enterprise, and servers that imitate GitHub, have their own hosts.
type Sender = Pick<Repository, 'html_url'>

const hostOf = ({ html_url }: Sender): string =>
  html_url && URL.canParse(html_url) ? new URL(html_url).host : 'github.com'

/** The name that links are stored by. Undefined for one that no prompt can be linked to. */
export const repositoryNameOf = (repository: Sender & { full_name: string }): string | undefined =>
  parseRepository(`${hostOf(repository)}/${repository.full_name}`)

/** GitHub's id. Every other server counts its own from 1, so theirs are negative hashes of host and id. */
export function repositoryIdOf(repository: Sender & { id: number }): number {
  const host = hostOf(repository)
  if (host === 'github.com') return repository.id
  return -createHash('sha256').update(`${host} ${repository.id}`).digest().readUIntBE(0, 6)
}

export const parseTimestamp = (given: Static<typeof time> | undefined): Date | undefined =>
  typeof given === 'number' ? storableOrUndefined(new Date(given * 1_000)) : parseInstant(given ?? '')

const Commit = Type.Object({
  message: text,
  author: Type.Object({ name: text, email: text, username: text }),
  /** False when the commit was pushed before, on another branch. */
  distinct: maybe(Type.Boolean()),
  added: files,
  removed: files,
  modified: files,
  id: Type.String(),
})

export const PushPayload = Type.Object({
  ref: Type.String(),
  after: Type.String({ minLength: 1 }),
  created: maybe(Type.Boolean()),
  deleted: maybe(Type.Boolean()),
  forced: maybe(Type.Boolean()),
  commits: Type.Array(Commit),
  repository: Repository,
})

export type PushPayload = Static<typeof PushPayload>

const Account = Type.Object({ login: Type.String(), id: Type.Integer() })

export type Account = Static<typeof Account>

export const PullRequestPayload = Type.Object({
  action: Type.String(),
  pull_request: Type.Object({
    number: Type.Integer({ minimum: 1, maximum: 2_147_483_647 }),
    html_url: Type.String({ pattern: '^https?://' }),
    title: text,
    user: maybe(Account),
    merged: maybe(Type.Boolean()),
    merged_by: maybe(Account),
    merge_commit_sha: text,
    commits: maybe(Type.Integer({ minimum: 0, maximum: 2_147_483_647 })),
    head: Type.Object({
      ref: Type.String({ minLength: 1 }),
      sha: Type.String({ minLength: 1 }),
      repo: maybe(Type.Object({ id, html_url: text })),
    }),
    base: Type.Object({ ref: Type.String({ minLength: 1 }) }),
    created_at: text,
    merged_at: text,
    closed_at: text,
    updated_at: text,
  }),
  repository: Repository,
})

export type PullRequestPayload = Static<typeof PullRequestPayload>

/** The event of a renamed or transferred repository. */
export const RepositoryPayload = Type.Object({ repository: Repository })

export type RepositoryPayload = Static<typeof RepositoryPayload>

const organisation = Type.String({ description: 'Public id of the organisation' })
const path = Type.String({ description: 'The path of the payload URL, below the address of the service' })

export const GithubWebhook = envelopeOf(
  Type.Object({
    org: organisation,
    path,
    secret: Type.String({ description: 'The secret of the webhook on GitHub; shown only once' }),
  }),
  'GithubWebhook',
  { org: 'org_1aB2c3D4e5F6g7H8', path: '/webhooks/github/org_1aB2c3D4e5F6g7H8', secret: 'x'.repeat(43) },
)

const GithubEvent = Type.Object(
  {
    received_at: Type.String({ format: 'date-time' }),
    name: Type.String({ description: 'The name of the event, such as push' }),
    outcome: Type.String({ description: 'What it led to, such as recorded' }),
    message: Type.String(),
  },
  { title: 'GithubEvent' },
)

export const ShownGithubWebhook = envelopeOf(
  Type.Object({
    org: organisation,
    path,
    secret_created_at: nullable(Type.String({ format: 'date-time' }), 'Null without a secret'),
    last_event: nullable(GithubEvent, 'The last one that was signed with this secret; null for none'),
  }),
  'ShownGithubWebhook',
  {
    org: 'org_1aB2c3D4e5F6g7H8',
    path: '/webhooks/github/org_1aB2c3D4e5F6g7H8',
    secret_created_at: '2026-11-14T23:35:00.000Z',
    last_event: {
      received_at: '2026-11-14T23:40:00.000Z',
      name: 'push',
      outcome: 'recorded',
      message: 'The histories have new or changed entries.',
    },
  },
)

/** A push that does not show everything that happened to the default branch. A clone does. */
const gaps = {
  force_push: 'The force push removed commits from the branch, and does not say which',
  too_many_commits: 'GitHub lists at most 2,048 commits of a push',
  files_not_listed: 'GitHub has not listed the files of every commit',
}

export type Gap = keyof typeof gaps

const messages = {
  recorded: 'The histories have new or changed entries.',
  unchanged: 'The event changed no history.',
  repeated: 'The event was already recorded.',
  ignored: 'This event does not change a history.',
  unlinked_repository: 'No prompt is linked to a file of this repository.',
  unlinked_files: 'No prompt is linked to a file that this push changes.',
}

export type EventOutcome = keyof typeof messages | Gap

export const outcomes = Object.keys({ ...messages, ...gaps }) as EventOutcome[]

export const isGap = (outcome: EventOutcome): outcome is Gap => outcome in gaps

export type EventResult = { recorded: number; outcome: EventOutcome; message: string }

export const resultOf = (outcome: EventOutcome, recorded = 0): EventResult => ({
  recorded,
  outcome,
  message: isGap(outcome) ? `${gaps[outcome]}. Run prompt-signals sync to complete the histories.` : messages[outcome],
})

/** GitHub sends a ping when the webhook is added. */
export const pingResult: EventResult = { ...resultOf('ignored'), message: 'Ping received: the webhook works.' }

/** `org` is the public id of the organisation. */
export type GithubObserver = { ended(result: EventResult, org: string): void }
