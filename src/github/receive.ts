import type { Clock } from '../clock.ts'
import type { Db } from '../db/client.ts'
import { invalid } from '../errors.ts'
import { countChanges, type PromptEntry, recordEntries } from '../history/record.ts'
import { createValidator } from '../lib/validate.ts'
import { findLinkedPrompts, type LinkedPrompt, moveLinks, repositoryKey } from '../prompts/link.ts'
import { type PullRequestChange, readPullRequest, recordPullRequest } from './pull_request.ts'
import { type DeliveryContext, type PushChange, readPush, recordPush } from './push.ts'
import { PullRequestPayload, PushPayload, RepositoryPayload } from './schema.ts'
import { insertDelivery, lockRepository, moveRepository, requireIndexPlans } from './store.ts'

type Delivery = {
  event: string
  /** GitHub's id of the delivery, which a redelivery repeats. */
  id: string
  payload: unknown
}

/** A validated delivery; `repository` is the one that it is recorded for. */
type Event = { repository: string } & (
  | { name: 'push'; payload: PushPayload }
  | { name: 'pull_request'; payload: PullRequestPayload }
  | { name: 'repository'; payload: RepositoryPayload }
)

type RenameChange = { type: 'rename'; to: string }
type Change = PushChange | PullRequestChange | RenameChange

const validatePush = createValidator(PushPayload, 'The push')
const validatePullRequest = createValidator(PullRequestPayload, 'The pull request')
const validateRepository = createValidator(RepositoryPayload, 'The repository')

/** Records a delivery, all or nothing and only once; returns how many entries are new or have changed by it. */
export async function receiveDelivery(
  db: Db,
  clock: Clock,
  organisationId: number,
  { event: name, id, payload }: Delivery,
): Promise<number> {
  const event = readEvent(name, payload)
  if (!event) return 0
  if (!/^[\x21-\x7e]{1,255}$/.test(id)) {
    throw invalid('The delivery is not valid.', [
      { path: 'X-GitHub-Delivery', message: 'must have 1 to 255 printable ASCII characters' },
    ])
  }
  const ref = { organisationId, repository: repositoryKey(event.repository) }
  const claim = { tenant: organisationId, key: `${organisationId} ${ref.repository}` }
  return db.transaction(async (sql) => {
    await requireIndexPlans(sql)
    // A merge and its push arrive concurrently, perhaps at two replicas, and each must see what the other has recorded.
    await lockRepository(sql, ref)
    const change = readChange(event, await findLinkedPrompts(sql, organisationId, ref.repository), clock.now())
    // A delivery that changes nothing is not stored: redelivered after a prompt was linked, it may change something.
    if (!change || !(await insertDelivery(sql, organisationId, id, clock.now()))) return 0
    return countChanges(await recordEntries(sql, clock, await recordChange({ sql, ref }, clock, change), 'github'))
  }, claim)
}

/** Undefined for an event that is not handled. */
function readEvent(name: string, given: unknown): Event | undefined {
  if (name === 'push') {
    const payload = validatePush(given)
    return { name, payload, repository: payload.repository.full_name }
  }
  if (name === 'pull_request') {
    const payload = validatePullRequest(given)
    return { name, payload, repository: payload.repository.full_name }
  }
  if (name === 'repository') {
    const payload = validateRepository(given)
    const repository = previousName(payload)
    return repository === payload.repository.full_name ? undefined : { name, payload, repository }
  }
  return undefined
}

/** What a repository was called before it was renamed or transferred; its name of now for one that was not. */
function previousName({ changes, repository }: RepositoryPayload): string {
  const [owner, name] = repository.full_name.split('/')
  const { user, organization } = changes?.owner?.from ?? {}
  return `${(user ?? organization)?.login ?? owner}/${changes?.repository?.name?.from ?? name}`
}

function readChange(event: Event, linked: LinkedPrompt[], now: Date): Change | undefined {
  if (linked.length === 0) return undefined
  if (event.name === 'push') return readPush(event.payload, linked, now)
  if (event.name === 'pull_request') return readPullRequest(event.payload, now)
  return { type: 'rename', to: repositoryKey(event.payload.repository.full_name) }
}

async function recordChange(context: DeliveryContext, clock: Clock, change: Change): Promise<PromptEntry[]> {
  if (change.type === 'push') return recordPush(context, change)
  if (change.type === 'pull_request') return recordPullRequest(context, change)
  // Links and all that is remembered follow the repository to its new name.
  const { sql, ref } = context
  await lockRepository(sql, { ...ref, repository: change.to })
  await moveLinks(sql, clock, ref.organisationId, ref.repository, change.to)
  await moveRepository(sql, ref, change.to)
  return []
}
