import type { Clock } from '../clock.ts'
import type { Db, Sql } from '../db/client.ts'
import { classifyError } from '../db/errors.ts'
import { invalid, ServiceError } from '../errors.ts'
import { sanitizeBranch } from '../git/entries.ts'
import { countChanges, parseReported, recordReported } from '../history/record.ts'
import { earlierOf } from '../lib/times.ts'
import { createValidator } from '../lib/validate.ts'
import { findLinkedPrompts, type LinkedPrompt, markFilesSeen, moveLinks } from '../prompts/link.ts'
import { parsePullRequest, recordPullRequest } from './pull_request.ts'
import { parsePush, recordPush } from './push.ts'
import {
  type DeliveryResult,
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
  type DeliveryKey,
  findWebhook,
  insertDelivery,
  lockRepository,
  type RepositoryRef,
  selectRepository,
  upsertRepository,
  type Webhook,
} from './store.ts'

/** A redelivery repeats the id and the body. */
type Delivery = DeliveryKey & { event: string; payload: unknown }

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
  // With another organisation's row, a delivery would be written to that organisation's histories.
  if (webhook.org !== org) throw new Error('response does not match request')
  return webhook
}

/** Rejects a body that was not signed with the secret. Compares in constant time. */
export async function verifyDelivery(secret: string, body: Uint8Array, signature: string): Promise<void> {
  const key = await crypto.subtle.importKey('raw', new TextEncoder().encode(secret), algorithm, false, ['verify'])
  const digest = Buffer.from(signature.slice('sha256='.length), 'hex')
  if (!(await crypto.subtle.verify('HMAC', key, digest, body as Uint8Array<ArrayBuffer>))) throw unauthorized()
}

const unauthorized = () =>
  new ServiceError(
    'unauthorized',
    'The delivery must be signed in X-Hub-Signature-256 with the secret of this organisation’s webhook.',
    {},
    { 'www-authenticate': 'X-Hub-Signature-256' },
  )

/** Records a delivery once, all or nothing, and not after `deadline`, when its sender gets an error. */
export async function receiveDelivery(
  db: Db,
  clock: Clock,
  organisationId: number,
  { event: name, id, signature, payload }: Delivery,
  deadline: number,
): Promise<DeliveryResult> {
  const event = parseEvent(name, payload)
  if (!event) return name === 'ping' ? pingResult : resultOf('ignored')
  if (!/^[\x21-\x7e]{1,255}$/.test(id)) {
    throw invalid('The delivery is not valid.', [
      { path: 'X-GitHub-Delivery', message: 'must have 1 to 255 printable ASCII characters' },
    ])
  }
  const repo = { organisationId, repositoryId: repositoryIdOf(event.payload.repository) }
  const permitRequest = { tenant: organisationId, key: `${organisationId} ${repo.repositoryId}`, deadline }
  const record = (mayMoveLinks: boolean) =>
    db.transaction(async (sql) => {
      // A merge and its push arrive concurrently, perhaps at two replicas, and each must see what the other has recorded.
      await lockRepository(sql, repo)
      const linked = await followRepository(sql, clock, repo, event.payload.repository, mayMoveLinks)
      return linked && recordEvent(sql, clock, repo, { id, signature }, event, linked)
    }, permitRequest)
  // Moved links are committed first: moving them locks prompts, and lockHistories must be the first to lock any.
  const attempt = async () => (await record(true)) ?? ((await record(false)) as DeliveryResult)
  return attempt().catch((error) => {
    if (!mayBeErasure(error)) throw error
    return attempt()
  })
}

/** A prompt that was found may be erased before it is locked. A second attempt does not find it. */
const mayBeErasure = (error: unknown): boolean =>
  classifyError(error) === 'bad_row' || (error instanceof ServiceError && error.code === 'not_found')

/** Validates a delivery. Returns undefined for an event that is not handled. */
function parseEvent(name: string, given: unknown): RepositoryEvent | undefined {
  if (name === 'push') return { name, payload: validatePush(given) }
  if (name === 'pull_request') return { name, payload: validatePullRequest(given) }
  if (name === 'repository') return { name, payload: validateRepository(given) }
  return undefined
}

async function recordEvent(
  sql: Sql,
  clock: Clock,
  repo: RepositoryRef,
  delivery: DeliveryKey,
  { name, payload }: RepositoryEvent,
  linked: LinkedPrompt[],
): Promise<DeliveryResult> {
  const now = clock.now()
  if (linked.length === 0) return resultOf('unlinked_repository')
  if (name === 'repository') return resultOf('unchanged')

  const change = name === 'push' ? parsePush(payload, linked, now) : parsePullRequest(payload, now)
  // Deliveries without effect are not stored, so redelivering one after a prompt was linked still works.
  if (typeof change === 'string') return resultOf(change)
  if (!(await insertDelivery(sql, repo.organisationId, delivery, now))) return resultOf('repeated')
  const entries = 'push' in change ? await recordPush(sql, repo, change) : await recordPullRequest(sql, repo, change)
  const { filesSeen, gap } = change
  const seenPrompts = filesSeen.map(({ promptId }) => promptId)
  const liveBranch = sanitizeBranch(payload.repository.default_branch)
  const options = { otherPrompts: seenPrompts, liveBranch }
  const reported = entries.map((given) => parseReported(given, 'github', clock))
  const { outcomes } = await recordReported(sql, clock, repo.organisationId, reported, options)
  const recorded = countChanges(outcomes)
  await markFilesSeen(sql, repo.organisationId, filesSeen)
  return resultOf(gap ?? (recorded > 0 ? 'recorded' : 'unchanged'), recorded)
}

/** Finds the linked prompts. If the delivery is the latest and has a new name, moves the links and returns undefined. */
async function followRepository(
  sql: Sql,
  clock: Clock,
  repo: RepositoryRef,
  repository: Repository,
  mayMoveLinks: boolean,
): Promise<LinkedPrompt[] | undefined> {
  const { pushed_at, updated_at } = repository
  const name = repositoryNameOf(repository)
  if (name === undefined) return []
  const times = [pushed_at, updated_at].flatMap((time) => parseTimestamp(time)?.getTime() ?? [])
  const now = clock.now()
  // With the time of a clock that is ahead, later names would be ignored as outdated.
  const seenAt = times.length > 0 ? earlierOf(new Date(Math.max(...times)), now) : now
  const known = await selectRepository(sql, repo)
  if (known && (known.seenAt > seenAt || !mayMoveLinks)) return findLinkedPrompts(sql, repo.organisationId, known.name)
  const isRenamed = known !== undefined && known.name !== name
  if (isRenamed) await moveLinks(sql, clock, repo.organisationId, known.name, name)
  const linked = await findLinkedPrompts(sql, repo.organisationId, name)
  // Repositories without linked prompts are not stored.
  if (linked.length > 0) await upsertRepository(sql, repo, { name, seenAt })
  return isRenamed && linked.length > 0 ? undefined : linked
}
