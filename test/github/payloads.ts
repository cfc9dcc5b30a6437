// GitHub's payloads, with the fields that matter; recorded.test.ts has complete ones.
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

/** GitHub's id of a repository that was created under this name; it never changes. */
export const idOf = (fullName: string) => Number.parseInt(sha(fullName.toLowerCase()).slice(0, 7), 16) + 1

const repositoryOf = (fullName: string, id = idOf(fullName)) => ({
  id,
  full_name: fullName,
  updated_at: '2026-11-14T11:00:00Z',
  pushed_at: '2026-11-14T11:00:00Z',
  default_branch: 'main',
})

export function push({
  repository = 'Acme/Prompts',
  repositoryId = idOf(repository),
  branch = 'main',
  ref = null as string | null,
  after = sha(`${branch} ${Math.random()}`),
  commits = [{}] as CommitGiven[],
  at = '2026-11-14T12:00:00Z',
  madeAt = null as string | null,
  created = false,
  deleted = false,
  more = {} as object,
} = {}) {
  const listed = commits.map(
    ({ author, distinct = true, added = [], removed = [], modified = [], ...given }, index) => ({
      id: given.id ?? (index === commits.length - 1 ? after : sha(`${after} ${index}`)),
      distinct,
      message: given.message ?? 'Say it better',
      timestamp: madeAt ?? at,
      author: author ?? { name: 'Ada Example', email: 'ada@example.com', username: 'ada' },
      added,
      removed,
      modified,
    }),
  )
  return {
    ref: ref ?? `refs/heads/${branch}`,
    after: deleted ? '0'.repeat(40) : after,
    repository: { ...repositoryOf(repository, repositoryId), pushed_at: Date.parse(at) / 1_000 },
    created,
    deleted,
    forced: false,
    commits: deleted ? [] : listed,
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
    updatedAt = null as string | null,
    commits = 1,
    title = 'Greet warmly',
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
      title,
      user,
      created_at: createdAt,
      closed_at: closedAt,
      updated_at: updatedAt ?? closedAt ?? createdAt,
      merged_at: isMerged ? closedAt : null,
      merge_commit_sha: isMerged ? mergeSha : sha('trial merge'),
      head: { ref: head, sha: headSha, repo: headRepository && repo(headRepository) },
      base: { ref: base },
      merged: isMerged,
      merged_by: mergedBy,
      commits,
    },
    repository: repo(repository),
  }
}

export const merged = (given: Parameters<typeof pullRequest>[1] = {}) =>
  pullRequest('closed', { mergedBy: bob, mergeSha: sha('merge'), closedAt: '2026-11-14T13:00:00Z', ...given })

export const repositoryEvent = (action: string, fullName: string, id = idOf(fullName)) => ({
  action,
  repository: { ...repositoryOf(fullName, id), updated_at: '2026-11-14T12:15:00Z' },
})

export const ping = { zen: 'Keep it logically awesome.', hook_id: 1, repository: repositoryOf('Acme/Prompts') }

const numbered = { pr_number: 7, pr_url: 'https://github.com/Acme/Prompts/pull/7' }

/** The entries of `pullRequest('opened')` and `merged()`. */
export const opened = {
  action: 'pr_opened',
  user: { name: 'ada', email: '101+ada@users.noreply.github.com' },
  commit_sha: sha('warmer'),
  branch_name: 'warmer',
  created_at: '2026-11-14T12:30:00.000Z',
  ...numbered,
}
export const mergedEntry = {
  action: 'pr_merged',
  user: { name: 'bob', email: '102+bob@users.noreply.github.com' },
  commit_sha: sha('merge'),
  branch_name: 'main',
  created_at: '2026-11-14T13:00:00.000Z',
  ...numbered,
}
