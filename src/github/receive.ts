import type { Clock } from '../clock.ts'
import type { Db, Sql } from '../db/client.ts'
import { classifyError } from '../db/errors.ts'
import { invalid, ServiceError } from '../errors.ts'
import { sanitizeBranch } from '../git/entries.ts'
import { countChanges, parseReported, recordReported } from '../history/record.ts'
import { earlierOf } from '../lib/times.ts'
import { createValidator } from '../lib/validate.ts'
import { findLinkedPrompts, markFilesSeen, moveLinks } from '../prompts/link.ts'
import { parsePullRequest, recordPullRequest } from './pull_request.ts'
import { recordPush } from './push.ts'
import { parsePush } from './push_payload.ts'
import {
  type EventResult,
  PullRequestPayload,
  PushPayload,
  parseTimestamp,
  pingResult,
  type Repository,
  RepositoryPayload,
  repositoryIdOf,
  repositoryNameOf,
  resultOf,
} from './schema.ts'
import {
  type GithubEventKey,
  insertGithubEvent,
  lockRepository,
  type RepositoryName,
  type RepositoryRef,
  selectRepository,
  upsertRepository,
} from './store.ts'
import { findWebhook, type Webhook } from './store_webhook.ts'

/** GitHub repeats the id and the body when it sends an event again. */
type ReceivedEvent = GithubEventKey & { event: string; payload: unknown }

type RepositoryEvent =
  | { name: 'push'; payload: PushPayload }
  | { name: 'pull_request'; payload: PullRequestPayload }
  | { name: 'repository'; payload: RepositoryPayload }

const wellFormedSignature = /^sha256=[0-9a-f]{64}$/
const wellFormedOrganisation = /^org_[0-9A-Za-z]{1,64}$/
const algorithm = { name: 'HMAC', hash: 'SHA-256' }

const validatePush = createValidator(PushPayload, 'The push')
const validatePullRequest = createValidator(PullRequestPayload, 'The pull request')
const validateRepository = createValidator(RepositoryPayload, 'The repository')

/** Rejects a malformed signature before the body is read. */
export function parseSignature(header: string | null): string {
  if (header === null || !wellFormedSignature.test(header)) throw unauthorized()
  return header
}

/** Finds the organisation's webhook. A missing one is rejected like a wrong signature. */
export async function requireWebhook(db: Db, org: string): Promise<Webhook> {
  const webhook = wellFormedOrganisation.test(org) ? await findWebhook(db.sql, org) : undefined
  if (!webhook) throw unauthorized()
  // With another organisation's row, an event would be written to that organisation's histories.
  if (webhook.org !== org) throw new Error('response does not match request')
  return webhook
}

/** Rejects a body that was not signed with the secret. Compares in constant time. */
export async function verifySignature(secret: string, body: Uint8Array, signature: string): Promise<void> {
  const key = await crypto.subtle.importKey('raw', new TextEncoder().encode(secret), algorithm, false, ['verify'])
  const digest = Buffer.from(signature.slice('sha256='.length), 'hex')
  if (!(await crypto.subtle.verify('HMAC', key, digest, body as Uint8Array<ArrayBuffer>))) throw unauthorized()
}

const unauthorized = () =>
  new ServiceError(
    'unauthorized',
    'The event must be signed in X-Hub-Signature-256 with the secret of this organisation’s webhook.',
    {},
    { 'www-authenticate': 'X-Hub-Signature-256' },
  )

/** Records an event once, all or nothing, and not after `deadline`, when its sender gets an error. */
export async function receiveEvent(
  db: Db,
  clock: Clock,
  organisationId: number,
  { event: name, id, signature, payload }: ReceivedEvent,
  deadline: number,
): Promise<EventResult> {
  const event = parseEvent(name, payload)
  if (!event) return name === 'ping' ? pingResult : resultOf('ignored')
  if (!/^[\x21-\x7e]{1,255}$/.test(id)) {
    throw invalid('The event is not valid.', [
      { path: 'X-GitHub-Delivery', message: 'must have 1 to 255 printable ASCII characters' },
    ])
  }
  const sender = describeSender(event.payload.repository, clock.now())
  if (!sender) return resultOf('unlinked_repository')
  const repo = { organisationId, repositoryId: repositoryIdOf(event.payload.repository) }
  const permitRequest = { tenant: organisationId, key: `${organisationId} ${repo.repositoryId}`, deadline }
  // A merge and its push arrive concurrently, perhaps at two replicas, and each must see what the other has recorded.
  const withLock = <T>(work: (sql: Sql) => Promise<T>) =>
    db.transaction((sql) => lockRepository(sql, repo).then(() => work(sql)), permitRequest)
  const attempt = async () => {
    // Links are moved first, and committed: that locks prompts, and lockHistories must be the first to lock any.
    const isMoved = isRenamed(await selectRepository(db.sql, repo), sender)
    if (isMoved) await withLock((sql) => followRename(sql, clock, repo, sender))
    return withLock((sql) => recordEvent(sql, clock, repo, sender, { id, signature }, event))
  }
  return attempt().catch((error) => {
    if (!mayBeErasure(error)) throw error
    return attempt()
  })
}

/** A prompt that was found may be erased before it is locked. A second attempt does not find it. */
const mayBeErasure = (error: unknown): boolean =>
  classifyError(error) === 'bad_row' || (error instanceof ServiceError && error.code === 'not_found')

/** Validates an event. Returns undefined for one that is not handled. */
function parseEvent(name: string, given: unknown): RepositoryEvent | undefined {
  if (name === 'push') return { name, payload: validatePush(given) }
  if (name === 'pull_request') return { name, payload: validatePullRequest(given) }
  if (name === 'repository') return { name, payload: validateRepository(given) }
  return undefined
}

/** The name of the repository, and when it had it by GitHub's clock. Undefined if no prompt can be linked to it. */
function describeSender(repository: Repository, now: Date): RepositoryName | undefined {
  const name = repositoryNameOf(repository)
  const { pushed_at, updated_at } = repository
  const times = [pushed_at, updated_at].flatMap((time) => parseTimestamp(time)?.getTime() ?? [])
  // With the time of a clock that is ahead, later names would be ignored as outdated.
  const seenAt = times.length > 0 ? earlierOf(new Date(Math.max(...times)), now) : now
  return name === undefined ? undefined : { name, seenAt }
}

const isRenamed = (known: RepositoryName | undefined, { name, seenAt }: RepositoryName): known is RepositoryName =>
  known !== undefined && known.name !== name && known.seenAt <= seenAt

/** Moves the links of a renamed repository. */
async function followRename(sql: Sql, clock: Clock, repo: RepositoryRef, sender: RepositoryName): Promise<void> {
  const known = await selectRepository(sql, repo)
  if (!isRenamed(known, sender)) return
  await moveLinks(sql, clock, repo.organisationId, known.name, sender.name)
  const linked = await findLinkedPrompts(sql, repo.organisationId, sender.name)
  if (linked.length > 0) await upsertRepository(sql, repo, sender)
}

async function recordEvent(
  sql: Sql,
  clock: Clock,
  repo: RepositoryRef,
  sender: RepositoryName,
  key: GithubEventKey,
  { name, payload }: RepositoryEvent,
): Promise<EventResult> {
  const now = clock.now()
  const known = await selectRepository(sql, repo)
  const linked = await findLinkedPrompts(sql, repo.organisationId, known?.name ?? sender.name)
  // Repositories without linked prompts are not stored.
  if (linked.length === 0) return resultOf('unlinked_repository')
  const isLater = known?.name === sender.name && known.seenAt < sender.seenAt
  if (!known || isLater) await upsertRepository(sql, repo, sender)
  if (name === 'repository') return resultOf('unchanged')

  const change = name === 'push' ? parsePush(payload, linked, now) : parsePullRequest(payload, now)
  // Events without effect are not stored, so sending one again after a prompt was linked still works.
  if (typeof change === 'string') return resultOf(change)
  if (!(await insertGithubEvent(sql, repo.organisationId, key, now))) return resultOf('repeated')
  const entries = 'push' in change ? await recordPush(sql, repo, change) : await recordPullRequest(sql, repo, change)
  const { filesSeen, gap } = change
  const seenPrompts = filesSeen.map(({ promptId }) => promptId)
  const liveBranch = sanitizeBranch(payload.repository.default_branch)
  const options = { otherPrompts: seenPrompts, liveBranch }
  // A pull request may affect a prompt that was linked to a file of another repository since its push.
  const ofRepository = new Set(linked.map(({ id }) => id))
  const own = entries.filter(({ prompt }) => ofRepository.has(prompt))
  const reported = own.map((given) => parseReported(given, 'github', clock))
  const { outcomes } = await recordReported(sql, clock, repo.organisationId, reported, options)
  const recorded = countChanges(outcomes)
  await markFilesSeen(sql, repo.organisationId, filesSeen)
  return resultOf(gap ?? (recorded > 0 ? 'recorded' : 'unchanged'), recorded)
}
