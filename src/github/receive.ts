import type { Clock } from '../clock.ts'
import type { Db } from '../db/client.ts'
import { invalid } from '../errors.ts'
import { type PromptEntry, recordEntries } from '../history/record.ts'
import { createValidator } from '../lib/validate.ts'
import { findLinkedPrompts, type LinkedPrompt, repositoryKey } from '../prompts/link.ts'
import { planPullRequest } from './pull_request.ts'
import { planPush } from './push.ts'
import { planRename, previousName } from './rename.ts'
import { PullRequestPayload, PushPayload, RepositoryPayload } from './schema.ts'
import { insertDelivery, lockRepository } from './store.ts'
import type { Scene } from './touch.ts'

export type Delivery = {
  event: string
  /** GitHub's own name for it, the same when it is sent again. */
  id: string
  payload: unknown
}

type Event = {
  repository: string
  plan(linked: LinkedPrompt[]): ((scene: Scene) => Promise<PromptEntry[]>) | undefined
}

const readPush = createValidator(PushPayload, 'The push')
const readPullRequest = createValidator(PullRequestPayload, 'The pull request')
const readRepository = createValidator(RepositoryPayload, 'The repository')

/** Carries out a delivery, all or nothing and only once; how many entries are new or have changed by it. */
export async function receiveDelivery(
  db: Db,
  clock: Clock,
  organisationId: number,
  { event, id, payload }: Delivery,
): Promise<number> {
  const read = readEvent(event, payload)
  if (!read) return 0
  if (!/^[\x21-\x7e]{1,255}$/.test(id)) {
    throw invalid('The delivery is not valid.', [
      { path: 'X-GitHub-Delivery', message: 'must have 1 to 255 printable ASCII characters' },
    ])
  }
  const place = { organisationId, repository: repositoryKey(read.repository) }
  const claim = { tenant: organisationId, key: `${organisationId} ${place.repository}` }
  return db.transaction(async (sql) => {
    // A merge and its push come at once, and each must see what the other has left. Another replica may have either.
    await lockRepository(sql, place)
    const linked = await findLinkedPrompts(sql, organisationId, place.repository)
    const carryOut = linked.length > 0 ? read.plan(linked) : undefined
    // What asks for nothing is not remembered: sent again after a prompt was linked, it may ask for something.
    if (!carryOut || !(await insertDelivery(sql, organisationId, id, clock.now()))) return 0
    return recordEntries(sql, clock, await carryOut({ sql, clock, place, linked }))
  }, claim)
}

function readEvent(event: string, payload: unknown): Event | undefined {
  if (event === 'push') {
    const push = readPush(payload)
    return { repository: push.repository.full_name, plan: (linked) => planPush(push, linked) }
  }
  if (event === 'pull_request') {
    const pullRequest = readPullRequest(payload)
    return { repository: pullRequest.repository.full_name, plan: () => planPullRequest(pullRequest) }
  }
  if (event === 'repository') {
    const change = readRepository(payload)
    const repository = previousName(change)
    return repository === undefined ? undefined : { repository, plan: () => planRename(change) }
  }
  return undefined
}
