// GitHub's payloads, with every top-level field that its documentation lists and values of the shapes it shows.
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

/** A commit's name, always the same for the same words. */
export const sha = (words: string) => createHash('sha1').update(words).digest('hex')

const none = '0'.repeat(40)

const account = ({ login, id }: Account) => ({
  login,
  id,
  node_id: 'MDQ6VXNlcjEwMQ==',
  avatar_url: `https://avatars.githubusercontent.com/u/${id}?v=4`,
  html_url: `https://github.com/${login}`,
  type: 'User',
  site_admin: false,
})

/** GitHub's id of a repository that was made under this name; it keeps it under any other. */
export const idOf = (fullName: string) => Number.parseInt(sha(fullName.toLowerCase()).slice(0, 7), 16) + 1

const repositoryOf = (fullName: string, id = idOf(fullName)) => ({
  id,
  node_id: 'MDEwOlJlcG9zaXRvcnkxODY4NTMwMDI=',
  name: fullName.split('/')[1],
  full_name: fullName,
  private: false,
  owner: account({ login: fullName.split('/')[0] as string, id: 7 }),
  html_url: `https://github.com/${fullName}`,
  description: null,
  fork: false,
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
      tree_id: sha('tree'),
      distinct,
      message: given.message ?? 'Say it better',
      timestamp: madeAt,
      url: `https://github.com/${repository}/commit/${after}`,
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
    pusher: { name: 'ada', email: 'ada@example.com' },
    sender: account(ada),
    created,
    deleted,
    forced: false,
    base_ref: null,
    compare: `https://github.com/${repository}/compare/main`,
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
      url: `https://api.github.com/repos/${repository}/pulls/${number}`,
      id: 279147437,
      node_id: 'MDExOlB1bGxSZXF1ZXN0Mjc5MTQ3NDM3',
      html_url: `https://github.com/${repository}/pull/${number}`,
      number,
      state: action === 'closed' ? 'closed' : 'open',
      locked: false,
      title: 'A warmer greeting',
      user: user && account(user),
      body: null,
      created_at: createdAt,
      updated_at: closedAt ?? createdAt,
      closed_at: closedAt,
      merged_at: isMerged ? closedAt : null,
      merge_commit_sha: isMerged ? mergeSha : sha('trial merge'),
      head: {
        label: `acme:${head}`,
        ref: head,
        sha: headSha,
        user: account(ada),
        repo: headRepository && repo(headRepository),
      },
      base: { label: `acme:${base}`, ref: base, sha: sha('base'), user: account(ada), repo: repo(repository) },
      author_association: 'MEMBER',
      draft: false,
      merged: isMerged,
      mergeable: null,
      merged_by: mergedBy && account(mergedBy),
      commits,
      additions: 1,
      deletions: 1,
      changed_files: 1,
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
