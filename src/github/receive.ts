import type { Clock } from '../clock.ts'
import type { Db, Sql } from '../db/client.ts'
import { invalid } from '../errors.ts'
import { countChanges, recordEntries } from '../history/record.ts'
import { createValidator } from '../lib/validate.ts'
import { markFilesSeen } from '../prompts/seen.ts'
import { parsePullRequest, recordPullRequest } from './pull_request.ts'
import { findGap, parsePush, recordPush } from './push.ts'
import { type Receipt, receiptOf } from './receipt.ts'
import { followOwner, followRepository, parseRepository, previousName } from './repository.ts'
import { OrganizationPayload, PullRequestPayload, PushPayload, RepositoryPayload } from './schema.ts'
import { insertDelivery, lockRepository, type RepositoryRef, requireIndexPlans } from './store.ts'

type Delivery = {
  event: string
  /** GitHub's id of the delivery, which a redelivery repeats. */
  id: string
  payload: unknown
}

type RepositoryEvent =
  | { name: 'push'; payload: PushPayload }
  | { name: 'pull_request'; payload: PullRequestPayload }
  | { name: 'repository'; payload: RepositoryPayload }

const validatePush = createValidator(PushPayload, 'The push')
const validatePullRequest = createValidator(PullRequestPayload, 'The pull request')
const validateRepository = createValidator(RepositoryPayload, 'The repository')
const validateOrganization = createValidator(OrganizationPayload, 'The organization')

/** Records a delivery, all or nothing and only once, before its sender gets an error at `deadline` or not at all. */
export async function receiveDelivery(
  db: Db,
  clock: Clock,
  organisationId: number,
  { event: name, id, payload }: Delivery,
  deadline?: number,
): Promise<Receipt> {
  const event = parseEvent(name, payload)
  if (!event) return receiptOf('ignored')
  if (!/^[\x21-\x7e]{1,255}$/.test(id)) {
    throw invalid('The delivery is not valid.', [
      { path: 'X-GitHub-Delivery', message: 'must have 1 to 255 printable ASCII characters' },
    ])
  }
  const repositoryId = event.name === 'organization' ? 0 : event.payload.repository.id
  const permitRequest = { tenant: organisationId, key: `${organisationId} ${repositoryId}`, deadline }
  return db.transaction(async (sql) => {
    await requireIndexPlans(sql)
    if (event.name === 'organization') {
      const isNew = await insertDelivery(sql, organisationId, id, clock.now())
      if (isNew) await followOwner(sql, clock, organisationId, event.payload)
      return receiptOf(isNew ? 'unchanged' : 'repeated')
    }
    const ref = { organisationId, repositoryId }
    // A merge and its push arrive concurrently, perhaps at two replicas, and each must see what the other has recorded.
    await lockRepository(sql, ref)
    return recordEvent(sql, clock, ref, id, event)
  }, permitRequest)
}

/** Validates a delivery; undefined for an event that is not handled. */
function parseEvent(
  name: string,
  given: unknown,
): RepositoryEvent | { name: 'organization'; payload: OrganizationPayload } | undefined {
  if (name === 'push') return { name, payload: validatePush(given) }
  if (name === 'pull_request') return { name, payload: validatePullRequest(given) }
  if (name === 'repository') return { name, payload: validateRepository(given) }
  if (name !== 'organization') return undefined
  const payload = validateOrganization(given)
  return payload.changes?.login ? { name, payload } : undefined
}

/** Records what happened in a repository, in its transaction. */
async function recordEvent(
  sql: Sql,
  clock: Clock,
  ref: RepositoryRef,
  delivery: string,
  { name, payload }: RepositoryEvent,
): Promise<Receipt> {
  const now = clock.now()
  const repository = parseRepository(payload.repository, now)
  const previously = name === 'repository' ? previousName(payload) : repository.name
  const linked = await followRepository(sql, clock, ref, repository, previously)
  if (linked.length === 0) return receiptOf('unlinked_repository')
  if (name === 'repository') return receiptOf('unchanged')

  const change = name === 'push' ? parsePush(payload, linked, now) : parsePullRequest(payload, now)
  const gap = name === 'push' ? findGap(payload) : undefined
  // A delivery that changes nothing is not stored: redelivered after a prompt was linked, it may change something.
  if (typeof change === 'string') return receiptOf(gap ?? change)
  if (!(await insertDelivery(sql, ref.organisationId, delivery, now))) return receiptOf('repeated')
  const entries = 'push' in change ? await recordPush(sql, ref, change) : await recordPullRequest(sql, ref, change)
  const recorded = countChanges(await recordEntries(sql, clock, entries, 'github'))
  // The files are marked only now, since the prompts are locked in the order of their ids.
  if ('push' in change) await markFilesSeen(sql, change.filesSeen)
  return receiptOf(gap ?? (recorded > 0 ? 'recorded' : 'unchanged'), recorded)
}
