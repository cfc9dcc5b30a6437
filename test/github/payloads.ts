// GitHub's payloads, with the fields that matter and some that do not; recorded.test.ts has complete ones.
import { createHash } from 'node:crypto'

type Account = { login: string; id: number }

export type CommitGiven = {
  id?: string
  message?: string
  author?: object
  distinct?: boolean
  added?: string[]
  removed?: string[]
  modified?: string[]
}

export const ada: Account = { login: 'ada', id: 101 }
export const bob: Account = { login: 'bob', id: 102 }

/** A SHA that is always the same for the same words. */
export const sha = (words: string) => createHash('sha1').update(words).digest('hex')

const none = '0'.repeat(40)

const account = ({ login, id }: Account) => ({ login, id, type: 'User', site_admin: false })

/** GitHub's id of a repository that was created under this name; it never changes. */
export const idOf = (fullName: string) => Number.parseInt(sha(fullName.toLowerCase()).slice(0, 7), 16) + 1

const repositoryOf = (fullName: string, id = idOf(fullName)) => ({
  id,
  full_name: fullName,
  private: false,
  created_at: '2019-05-15T15:19:25Z',
  updated_at: '2026-11-14T11:00:00Z',
  pushed_at: '2026-11-14T11:00:00Z',
  default_branch: 'main',
})

type PushGiven = {
  repository?: string
  repositoryId?: number
  branch?: string
  ref?: string
  after?: string
  commits?: CommitGiven[]
  at?: string
  madeAt?: string
  created?: boolean
  deleted?: boolean
  more?: object
}

export function push({
  repository = 'Acme/Prompts',
  repositoryId = idOf(repository),
  branch = 'main',
  ref = `refs/heads/${branch}`,
  after = sha(`${branch} ${Math.random()}`),
  commits = [{}],
  at = '2026-11-14T12:00:00Z',
  madeAt = at,
  created = false,
  deleted = false,
  more = {},
}: PushGiven = {}) {
  const listed = commits.map(
    ({ author, distinct = true, added = [], removed = [], modified = [], ...given }, index) => ({
      id: given.id ?? (index === commits.length - 1 ? after : sha(`${after} ${index}`)),
      distinct,
      message: given.message ?? 'Say it better',
      timestamp: madeAt,
      author: author ?? { name: 'Ada Example', email: 'ada@example.com', username: 'ada' },
      committer: { name: 'GitHub', email: 'noreply@github.com', username: 'web-flow' },
      added,
      removed,
      modified,
    }),
  )
  return {
    ref,
    before: created ? none : sha('before'),
    after: deleted ? none : after,
    repository: {
      ...repositoryOf(repository, repositoryId),
      created_at: 1557933565,
      pushed_at: Date.parse(at) / 1_000,
    },
    sender: account(ada),
    created,
    deleted,
    forced: false,
    commits: deleted ? [] : listed,
    head_commit: deleted ? null : (listed.at(-1) ?? null),
    ...more,
  }
}

export function pullRequest(
  action: string,
  {
    repository = 'Acme/Prompts',
    repositoryId = idOf(repository),
    number = 7,
    user = ada as Account | null,
    mergedBy = null as Account | null,
    mergeSha = null as string | null,
    head = 'warmer',
    headSha = sha(head),
    headRepository = repository as string | null,
    base = 'main',
    createdAt = '2026-11-14T12:30:00Z',
    closedAt = null as string | null,
    commits = 1,
  } = {},
) {
  const repo = (fullName: string) => ({
    ...repositoryOf(fullName, fullName === repository ? repositoryId : undefined),
    pushed_at: '2026-11-14T12:00:00Z',
  })
  const isMerged = mergedBy !== null
  return {
    action,
    number,
    pull_request: {
      html_url: `https://github.com/${repository}/pull/${number}`,
      number,
      state: action === 'closed' ? 'closed' : 'open',
      user: user && account(user),
      created_at: createdAt,
      closed_at: closedAt,
      merged_at: isMerged ? closedAt : null,
      merge_commit_sha: isMerged ? mergeSha : sha('trial merge'),
      head: { ref: head, sha: headSha, repo: headRepository && repo(headRepository) },
      base: { ref: base, sha: sha('base'), repo: repo(repository) },
      merged: isMerged,
      merged_by: mergedBy && account(mergedBy),
      commits,
    },
    repository: repo(repository),
    sender: account(ada),
  }
}

export const merged = (given: Parameters<typeof pullRequest>[1] = {}) =>
  pullRequest('closed', { mergedBy: bob, mergeSha: sha('merge'), closedAt: '2026-11-14T13:00:00Z', ...given })

export const repositoryEvent = (action: string, fullName: string, id = idOf(fullName)) => ({
  action,
  changes: {},
  repository: { ...repositoryOf(fullName, id), updated_at: '2026-11-14T12:15:00Z' },
  sender: account(ada),
})

export const ping = {
  zen: 'Keep it logically awesome.',
  hook_id: 1,
  hook: { type: 'Repository', id: 1, name: 'web', active: true, events: ['push', 'pull_request'] },
  repository: repositoryOf('Acme/Prompts'),
  sender: account(ada),
}
