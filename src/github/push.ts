import type { Clock } from '../clock.ts'
import type { PromptEntry } from '../history/record.ts'
import { keepable, parseInstant } from '../lib/times.ts'
import type { LinkedPrompt } from '../prompts/link.ts'
import { deployed } from './entries.ts'
import { tellMerges } from './merge.ts'
import { authorOf, fitBranch, fitSha } from './people.ts'
import type { Commit, PushPayload } from './schema.ts'
import { deleteTouches, type Touch } from './store.ts'
import { type Scene, tell, touchBranch } from './touch.ts'

const branches = 'refs/heads/'

/** What a push asks for, once it is known which prompts the repository holds; undefined for nothing. */
export function planPush(
  payload: PushPayload,
  linked: LinkedPrompt[],
): ((scene: Scene) => Promise<PromptEntry[]>) | undefined {
  if (payload.deleted || !payload.ref.startsWith(branches)) return undefined
  const branch = payload.ref.slice(branches.length)
  const isDefault = branch === payload.repository.default_branch
  // Elsewhere a commit that was pushed before is one of the default branch that was merged or rebased upon.
  const commits = payload.commits.filter(({ distinct }) => isDefault || distinct !== false)
  const touches = findTouches(commits, linked)
  const isNew = payload.created === true && !isDefault
  if (touches.length === 0 && !isNew) return undefined

  return async (scene) => {
    const head = { branch: fitBranch(branch), commitSha: fitSha(payload.after) }
    const pushedAt = readPushedAt(payload, scene.clock)
    if (isNew) await deleteTouches(scene.sql, scene.place, head.branch, pushedAt)
    const push = {
      head,
      commits: payload.commits.map(({ id }) => fitSha(id)),
      isAllNew: payload.commits.every(({ distinct }) => distinct !== false),
      touches,
    }
    const told = await touchBranch(scene, push, pushedAt)
    const merges = await tellMerges(scene, push)
    if (!isDefault) return [...merges.told, ...told]
    const at = parseInstant(payload.head_commit?.timestamp ?? '') ?? scene.clock.now()
    const byId = new Map(commits.map((commit) => [fitSha(commit.id), commit]))
    const direct = merges.direct.flatMap(({ promptId, commits }) => {
      const last = byId.get(commits.at(-1) as string) as Commit
      return tell([promptId], deployed(head, authorOf(last), at))
    })
    return [...merges.told, ...direct, ...told]
  }
}

/** The prompts whose files the commits touch, each with the commits that do. */
function findTouches(commits: Commit[], linked: LinkedPrompt[]): Touch[] {
  const touches = new Map(linked.map(({ id, path }) => [path, { promptId: id, commits: [] as string[] }]))
  for (const commit of commits) {
    for (const path of [...commit.added, ...commit.modified, ...commit.removed]) {
      touches.get(path)?.commits.push(fitSha(commit.id))
    }
  }
  return [...touches.values()].filter((touch) => touch.commits.length > 0)
}

/** GitHub's own time, so that pushes have their order even when they arrive in another. */
function readPushedAt({ repository }: PushPayload, clock: Clock): Date {
  const { pushed_at: at } = repository
  const given = typeof at === 'number' ? keepable(new Date(at * 1_000)) : parseInstant(at ?? '')
  return given ?? clock.now()
}
