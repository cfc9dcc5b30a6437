import type { Clock } from '../clock.ts'
import type { Told } from '../history/record.ts'
import { parseInstant } from '../lib/times.ts'
import type { LinkedPrompt } from '../prompts/link.ts'
import { deployed, ended } from './entries.ts'
import { authorOf, fitBranch, fitSha } from './people.ts'
import type { Commit, PushPayload } from './schema.ts'
import { deleteTouches } from './store.ts'
import { type Scene, tell, touchBranch } from './touch.ts'

const branches = 'refs/heads/'

/** What a push asks for, once it is known which prompts the repository holds; undefined for nothing. */
export function planPush(
  payload: PushPayload,
  linked: LinkedPrompt[],
): ((scene: Scene) => Promise<Told[]>) | undefined {
  if (payload.deleted || !payload.ref.startsWith(branches)) return undefined
  const branch = payload.ref.slice(branches.length)
  const isDefault = branch === payload.repository.default_branch
  // Elsewhere a commit that was pushed before is one of the default branch that was merged or rebased upon.
  const commits = payload.commits.filter(({ distinct }) => isDefault || distinct !== false)
  const touched = findTouched(commits, linked)
  const isNew = payload.created === true && !isDefault
  if (touched.size === 0 && !isNew) return undefined

  return async (scene) => {
    const head = { branch: fitBranch(branch), commitSha: fitSha(payload.after) }
    const pushedAt = readPushedAt(payload, scene.clock)
    if (isNew) await deleteTouches(scene.sql, scene.place, head.branch, pushedAt)
    const promptIds = [...touched.keys()]
    const { told, merge } = await touchBranch(scene, head, promptIds, pushedAt)
    if (merge) return [...tell(promptIds, ended(merge)), ...told]
    if (!isDefault) return told
    const at = parseInstant(payload.head_commit?.timestamp ?? '') ?? scene.clock.now()
    const direct = [...touched].flatMap(([id, commit]) => tell([id], deployed(head, authorOf(commit), at)))
    return [...direct, ...told]
  }
}

/** The prompts whose files the commits touch, each with the last commit that does: they come oldest first. */
function findTouched(commits: Commit[], linked: LinkedPrompt[]): Map<number, Commit> {
  const ids = new Map(linked.map(({ id, path }) => [path, id]))
  const touched = new Map<number, Commit>()
  for (const commit of commits) {
    for (const path of [...commit.added, ...commit.modified, ...commit.removed]) {
      const id = ids.get(path)
      if (id !== undefined) touched.set(id, commit)
    }
  }
  return touched
}

/** GitHub's own time, so that pushes have their order even when they arrive in another. */
function readPushedAt({ repository }: PushPayload, clock: Clock): Date {
  const { pushed_at: at } = repository
  const given = typeof at === 'number' ? new Date(at * 1_000) : parseInstant(at ?? '')
  return given && !Number.isNaN(given.getTime()) ? given : clock.now()
}
