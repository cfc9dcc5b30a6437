import type { NewHistoryEntry } from '../history/schema.ts'
import { dayMs } from '../lib/times.ts'

// Six weeks of invented prompts, and an experiment. Times are relative to the start of the current day, UTC, so that every day has the
// same signals and every verdict is the same, whenever the demo starts.

const people = {
  ada: { name: 'Ada Example', email: 'ada@example.com' },
  bob: { name: 'Bob Example', email: 'bob@example.com' },
  eve: { name: 'Eve Example', email: 'eve@example.com' },
}

type Change = ReturnType<typeof change>

const pulls = {
  3: { branch: 'shorter', openedDaysAgo: 34.6, openedAs: 'eccbc87e4b5ce2fe28308fd9f2a7baf3c1f2a660' },
  7: { branch: 'warmer', openedDaysAgo: 14.4, openedAs: 'c9f0f895fb98ab9159f51fd0297e236d5e1b7c33' },
  12: { branch: 'kinder', openedDaysAgo: 9.4, openedAs: 'aab3238922bcc25a6f606eb525ffdc56f1c0a9d2' },
  11: { branch: 'bullets', openedDaysAgo: 5.2, openedAs: '1f0e3dad99908345f7439f8ffabdffc4c0d4ae35' },
}

const change = (
  daysAgo: number,
  by: keyof typeof people,
  title: string,
  commit: string,
  rate: number,
  pr?: keyof typeof pulls,
) => ({ daysAgo, by, title, commit, rate, pr })

/** A pull request whose head some of the users get since then. */
type Trial = { daysAgo: number; change: Change; share: number }

type DemoPrompt = { name: string; signalsADay: number; changes: Change[]; trial?: Trial }

const demoPrompts: DemoPrompt[] = [
  {
    name: 'greeting',
    signalsADay: 110,
    changes: [
      change(42, 'ada', 'Add greeting', '8f14e45fceea167a5a36dedd4bea2543f1c0a9d2', 0.74),
      change(33.1, 'bob', 'Shorten the greeting', 'c81e728d9d4c2f636f067f89cc14862c65990aa1', 0.75, 3),
      change(22.3, 'eve', 'Drop the name', 'a87ff679a2f3e71d9181a67b7542122c04521bd8', 0.62),
      change(13.2, 'ada', 'Greet warmly', '45c48cce2e2d7fbdea1afc51c7c6ad26b0d94e11', 0.78, 7),
    ],
  },
  {
    name: 'farewell',
    signalsADay: 45,
    changes: [
      change(40.2, 'ada', 'Add farewell', '1679091c5a880faf6fb5e6087eb1b2dc4daa3db3', 0.8),
      change(6.3, 'bob', 'Close with an offer', 'd3d9446802a44259755d38e6d163e82097f2c7be', 0.57),
    ],
  },
  {
    name: 'summary',
    signalsADay: 30,
    changes: [
      change(38.4, 'eve', 'Add summary', '6512bd43d9caa6e02c990b0a82652dca3e9d0b11', 0.7),
      change(4.6, 'bob', 'Answer in bullets', 'c20ad4d76fe97759aa27a0c99bff6710a1be8c52', 0.8, 11),
    ],
  },
  {
    name: 'refund',
    signalsADay: 130,
    changes: [change(14.2, 'eve', 'Add refund', 'c51ce410c124a10e0db5e4b97fc2af39f1c0a9d2', 0.67)],
    trial: { daysAgo: 9, change: change(9.4, 'ada', 'Apologise first', pulls[12].openedAs, 0.79, 12), share: 0.3 },
  },
]

export function generateDemoData(now: Date) {
  return demoPrompts.map((prompt, index) => ({
    name: prompt.name,
    history: [
      ...prompt.changes.flatMap((change) => entriesOf(change, now)),
      ...(prompt.trial ? entriesOf(prompt.trial.change, now).slice(0, 1) : []),
    ],
    signals: signalsOf(prompt, now, createRandom(index + 22)),
  }))
}

/** A number of days from the start of today. Half a day of signals is spread over what has passed of today. */
function timeOf(now: Date, days: number): Date {
  const today = Math.floor(now.getTime() / dayMs) * dayMs
  return new Date(today + Math.floor(days > 0 ? 2 * days * (now.getTime() - today) : days * dayMs))
}

function entriesOf({ daysAgo, by, title, commit, pr }: Change, now: Date): NewHistoryEntry[] {
  const live = {
    action: 'deployed' as const,
    user: people[by],
    commit_sha: commit,
    title,
    branch_name: 'main',
    created_at: timeOf(now, -daysAgo).toISOString(),
  }
  if (!pr) return [live]
  const { branch, openedDaysAgo, openedAs } = pulls[pr]
  const pull = { pr_number: pr, pr_url: `https://github.com/example/prompts/pull/${pr}` }
  const opened = { commit_sha: openedAs, branch_name: branch, created_at: timeOf(now, -openedDaysAgo).toISOString() }
  return [
    { ...live, ...pull, ...opened, action: 'pr_opened' },
    { ...live, ...pull, action: 'pr_merged' },
  ]
}

/** Most signals come by day and on workdays. Some name a commit. */
function signalsOf({ signalsADay, changes, trial }: DemoPrompt, now: Date, random: () => number) {
  const [first] = changes as [Change, ...Change[]]
  return drawDays(-first.daysAgo, 0.5, signalsADay, random).map((day) => {
    const live = changes.findLastIndex(({ daysAgo }) => -daysAgo <= day)
    const since = day + (changes[live] as Change).daysAgo
    // Some sessions started before the change and continue with the old version.
    const isOld = live > 0 && since < 0.5 && random() < 0.3
    const running = trial && day >= -trial.daysAgo ? trial : undefined
    const isHead = running !== undefined && random() < running.share
    const { rate, commit } = isHead ? running.change : (changes[isOld ? live - 1 : live] as Change)
    const named =
      running || isOld || random() < 0.45 ? { commit_sha: random() < 0.3 ? commit.slice(0, 7) : commit } : {}
    const session = Math.floor(random() * 65_536)
      .toString(16)
      .padStart(4, '0')
    const metadata = JSON.stringify({ session, model: random() < 0.6 ? 'gpt-5' : 'claude-sonnet-4', ...named })
    const value = random() < rate ? ('positive' as const) : ('negative' as const)
    return { createdAt: timeOf(now, day), value, metadata }
  })
}

function drawDays(from: number, until: number, aDay: number, random: () => number): number[] {
  const days: number[] = []
  while (days.length < Math.round(aDay * (until - from))) {
    const day = from + random() * (until - from)
    if (random() < businessOf(day)) days.push(day)
  }
  return days.sort((a, b) => a - b)
}

/** Two days of seven are quiet. They are not those of the calendar, or the verdicts would depend on the weekday. */
function businessOf(day: number): number {
  const isQuiet = Math.floor(day + 700) % 7 < 2
  const hour = (day - Math.floor(day)) * 24
  const daylight = Math.max(Math.sin((Math.PI * (hour - 6)) / 16), 0)
  return (0.08 + daylight) * (isQuiet ? 0.5 : 1)
}

/** Numbers from 0 to 1 that are the same for the same seed (mulberry32). */
export function createRandom(seed: number): () => number {
  let state = seed
  return () => {
    state = (state + 0x6d2b79f5) | 0
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state)
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }
}
