// Random stories of a repository. Events arrive in any order, and GitHub does not retry: a lost one comes when somebody
// sends it again. The histories are those of the right order.
import { expect, test } from 'bun:test'
import { inFullRun } from '../full.ts'
import { useService } from '../use.ts'
import { createHook, paths } from './hook.ts'
import { bob, type CommitGiven, pullRequest, push, sha } from './payloads.ts'

const service = useService()
const seed = Number(process.env.TEST_SEED ?? 15)
const count = inFullRun(40, 3)

type Name = keyof typeof paths
type Delivery = [event: string, payload: object]
type Commit = { id: string; name: Name }
type Branch = { name: string; commits: Commit[]; isPushed: boolean; pull: Pull | null }
type Pull = { number: number; head: string; createdAt: string; state: 'open' | 'closed' }
type Story = { deliveries: Delivery[]; merges: Delivery[]; live: Record<Name, string[]> }

/** Numbers from 0 to below 1, the same for the same seed. */
function createRandom(start: number): () => number {
  let state = start
  return () => {
    state = (state * 1_103_515_245 + 12_345) % 2 ** 31
    return state / 2 ** 31
  }
}

const listed = ({ id, name }: Commit): CommitGiven => ({ id, modified: [paths[name]] })

/** `isReused`: all pull requests come from one branch, each after the merge of the one before. */
function tell(random: () => number, isReused: boolean): Story {
  const pick = <T>(...from: T[]): T => from[Math.floor(random() * from.length)] as T
  const story: Story = { deliveries: [], merges: [], live: { greeting: [], farewell: [], other: [] } }
  const branches: Branch[] = []
  const onMain = new Set<string>()
  let [minute, numbers] = [0, 0]
  const tick = () => new Date(Date.UTC(2026, 10, 14, 0, ++minute)).toISOString()
  const commit = (): Commit => ({ id: sha(`${random()}`), name: pick('greeting', 'farewell', 'other') })
  const send = (event: string, payload: object) => story.deliveries.push([event, payload])
  const newOf = ({ commits }: Branch) => commits.filter(({ id }) => !onMain.has(id))
  const sendPull = (action: string, branch: Branch, more: object = {}) => {
    const headSha = branch.commits.at(-1)?.id as string
    const given = { ...branch.pull, headSha, commits: newOf(branch).length, ...more }
    send('pull_request', pullRequest(action, given))
  }

  function change(branch: Branch): void {
    const commits = Array.from({ length: pick(1, 2) }, commit)
    branch.commits.push(...commits)
    const [{ id: after }, at] = [commits.at(-1) as Commit, tick()]
    send('push', push({ branch: branch.name, after, commits: commits.map(listed), at, created: !branch.isPushed }))
    branch.isPushed = true
  }

  function merge(branch: Branch): void {
    const { number } = branch.pull as Pull
    const own = newOf(branch)
    const method = isReused ? 'merge' : pick('merge', 'squash', 'rebase')
    const mergeSha = sha(`${method} ${random()}`)
    const rebased = own.map((one, index) => ({ ...one, id: index === own.length - 1 ? mergeSha : sha(`${random()}`) }))
    const commits = {
      merge: [
        ...own.map((one) => ({ ...listed(one), distinct: false })),
        { id: mergeSha, message: `Merge pull request #${number} from acme/x` },
      ],
      squash: [{ id: mergeSha, modified: [...new Set(own.map(({ name }) => paths[name]))] }],
      rebase: rebased.map(listed),
    }[method]
    const at = tick()
    sendPull('closed', branch, { mergedBy: bob, mergeSha, closedAt: at })
    story.merges.push(story.deliveries.at(-1) as Delivery)
    send('push', push({ after: mergeSha, commits, at }))
    for (const { id } of own) onMain.add(id)
    for (const name of new Set(own.map(({ name }) => name))) story.live[name].push(`pr_merged ${number} ${mergeSha}`)
    branch.pull = null
    if (!isReused) branches.splice(branches.indexOf(branch), 1)
  }

  for (let step = 0; step < 12; step += 1) {
    const branch = pick(...branches)
    const { pull } = branch ?? {}
    const does = pick('direct', 'change', 'change', 'pull', 'pull', 'pull', 'branch')
    if (does === 'direct' && !isReused) {
      const one = commit()
      send('push', push({ after: one.id, commits: [listed(one)], at: tick() }))
      story.live[one.name].push(`deployed null ${one.id}`)
    } else if (!branch || (does === 'branch' && !isReused)) {
      branches.push({ name: `topic-${branches.length}-${step}`, commits: [], isPushed: false, pull: null })
      change(branches.at(-1) as Branch)
      // What is pushed to a closed one counts as opened if it arrives before the closing.
    } else if (does === 'change' && pull?.state !== 'closed') change(branch)
    else if (!pull) {
      if (newOf(branch).length === 0) change(branch)
      branch.pull = { number: ++numbers, head: branch.name, createdAt: tick(), state: 'open' }
      sendPull('opened', branch)
    } else if (pull.state === 'closed') {
      pull.state = 'open'
      sendPull('reopened', branch, { updatedAt: tick() })
    } else if (pick(true, false, false)) {
      pull.state = 'closed'
      sendPull('closed', branch, { closedAt: tick() })
    } else merge(branch)
  }
  return story
}

const names = Object.keys(paths) as Name[]

async function play(deliveries: Delivery[]): Promise<Record<Name, string[]>> {
  const hook = await createHook(service)
  for (const [event, payload] of deliveries) await hook.send(event, payload)
  const entries = names.map(async (name) => {
    const history = await hook.history(name)
    return [name, history.map((one) => `${one.action} ${one.pr_number} ${one.commit_sha} ${one.created_at}`).sort()]
  })
  return Object.fromEntries(await Promise.all(entries))
}

const liveOf = (histories: Record<Name, string[]>) =>
  Object.fromEntries(
    names.map((name) => {
      const live = histories[name].filter((line) => /^(deployed|pr_merged)/.test(line))
      return [name, live.map((line) => line.split(' ').slice(0, 3).join(' ')).sort()]
    }),
  )

const sorted = (live: Story['live']) => Object.fromEntries(names.map((name) => [name, live[name].toSorted()]))

test(`${count} stories of branches that are merged once are the same in any order (TEST_SEED=${seed})`, async () => {
  const random = createRandom(seed)
  for (let number = 0; number < count; number += 1) {
    const { deliveries, live } = tell(random, false)
    const inOrder = await play(deliveries)
    expect(liveOf(inOrder)).toEqual(sorted(live))
    const shuffled = deliveries.map((one) => ({ one, at: random() })).sort((a, b) => a.at - b.at)
    expect(await play(shuffled.map(({ one }) => one))).toEqual(inOrder)
  }
})

test(`in ${count} stories of a branch that is merged again, an event may be lost and sent later (TEST_SEED=${seed})`, async () => {
  const random = createRandom(seed)
  for (let number = 0; number < count; number += 1) {
    const { deliveries, merges, live } = tell(random, true)
    expect(liveOf(await play(deliveries))).toEqual(sorted(live))
    const losable = random() < 0.5 && merges.length > 0 ? merges : deliveries
    const lost = losable[Math.floor(random() * losable.length)] as Delivery
    const others = deliveries.filter((one) => one !== lost)
    expect(liveOf(await play([...others, lost]))).toEqual(sorted(live))
  }
})
