// The verdict in words, written once. The console imports this file in the browser.
import { pullRequestWords, showNumber } from '../lib/repository_links.ts'
import { type Estimate, isUnknown } from './rate.ts'

type Verdict = 'better' | 'worse' | 'same' | 'undecided'

type Change = { commit_sha: string; pr_number: number | null; pr_url?: string | null }

type Compared = {
  rate: Estimate | null
  difference: Estimate | null
  verdict: Verdict | null
  signals_needed: number | null
}

/** What kind of comparison a sentence is about, to be shown beside it. */
export const comparisonKinds = {
  beforeAfter: 'Before and after, not an experiment: anything else that changed at the same time is included.',
  sideBySide: 'Side by side on the same days: what changes for both cancels out, if users are assigned at random.',
}

export const verdictSigns = { better: '▲', worse: '▼', same: '=', undecided: '?' }

/**
 * The beginning of a hash, or a name such as release-12, whose end tells it from others. Cuts between two characters:
 * Postgres rejects half of a surrogate pair in an event.
 */
export function shortenCommit(commit: string, hashLength = 7): string {
  const letters = [...commit]
  if (/^(?=.*[a-f])[0-9a-f]{7,64}$/i.test(commit)) return letters.slice(0, hashLength).join('')
  return letters.length > 24 ? `${letters.slice(0, 11).join('')}…${letters.slice(-12).join('')}` : commit
}

/** Such as PR #7 or, on GitLab, MR !7. */
export const nameChange = (change: Change): string =>
  change.pr_number === null
    ? shortenCommit(change.commit_sha)
    : `${pullRequestWords(change.pr_url).short} ${showNumber(change)}`

/** Who changed it, and who merged it if that is somebody else, such as a bot. */
export function nameAuthors({ user, authors = [] }: { user: { name: string }; authors?: string[] }): string {
  if (authors.every((name) => name === user.name)) return user.name
  const shown = authors.length > 3 ? [...authors.slice(0, 2), `${authors.length - 2} others`] : authors
  const names = [shown.slice(0, -1).join(', '), ...shown.slice(-1)].filter(Boolean).join(' and ')
  return authors.includes(user.name) ? names : `${names}, merged by ${user.name}`
}

export const describeLive = (change: Change & { title?: string | null }): string =>
  `${nameChange(change)} went live${change.title ? `: ${change.title}` : ''}`

/**
 * Two rates and their difference in percent, with one digit after the point. The difference is taken after rounding, so that
 * the three numbers add up.
 */
export function showDifference({ value: rate }: Estimate, { value, low, high }: Estimate) {
  const tenths = (share: number) => Math.round(share * 1_000)
  const write = (number: number) => (number / 10).toFixed(1)
  // An end that rounds to zero keeps its sign, so that it does not contradict the verdict.
  const sign = (number: number) => `${number < 0 || Object.is(number, -0) ? '−' : '+'}${write(Math.abs(number))}`
  const [from, to] = [tenths(rate - value), tenths(rate)]
  const points = to - from
  return {
    from: write(from),
    to: write(to),
    points: sign(points),
    low: sign(Math.min(tenths(low), points)),
    high: sign(Math.max(tenths(high), points)),
  }
}

type ComparedChange = Compared & {
  change: Change
  base: (Change & { skipped: number }) | null
  window: { until: string | null }
}

/** Describes what happened since a change went live. Says nothing about causes. A base that was chosen is always named. */
export function describeChange(impact: ComparedChange, isChosen = false): string {
  const { rate, difference, base, window } = impact
  const name = nameChange(impact.change)
  const since = window.until === null ? `since ${name}` : `while ${name} was live`
  if (!rate) return `No signals ${since}.`
  if (!difference) {
    const other = base && isChosen ? nameChange(base) : 'The change before it'
    const why = base ? `${other} has no signals.` : 'There is no earlier change to compare with.'
    return `${capitalise(since)}: ${(rate.value * 100).toFixed(1)} % positive. ${why}`
  }
  const than = base && (isChosen || base.skipped > 0) ? `, compared with ${nameBase(base)}` : ''
  const figures = describeFigures(impact, rate, difference, window.until !== null)
  return `${capitalise(impact.verdict ?? 'undecided')} ${since}${than}: ${figures}`
}

function nameBase({ skipped, ...change }: Change & { skipped: number }): string {
  if (skipped === 0) return nameChange(change)
  const between = skipped === 1 ? '1 change between them' : `${skipped} changes between them`
  return `${nameChange(change)} (${between} had too few signals)`
}

export const describeWander = ({ points, days }: { points: number; days: number }): string =>
  `Without changes, the rate wanders by ${points.toFixed(1)} points (${days} days of past).`

/** Describes a rate that changed while one change was live. */
export function describeRateChange(changed: { from: string; until: string; after: Estimate; difference: Estimate }) {
  const { from, to, points, low, high } = showDifference(changed.after, changed.difference)
  const days = `from ${changed.from} to ${changed.until}`
  return `Changed, but not in git: ${from} → ${to} % positive ${days} (${points} points, between ${low} and ${high}).`
}

/** Describes how two versions compare that ran at the same time. */
export function describeSides(compared: Omit<Compared, 'rate'> & { base: Side; head: Side; reason: string | null }) {
  const { base, head, difference, verdict } = compared
  const { base: earlier, head: later } = nameSides(base, head)
  if (!head.rate || !difference) return `Undecided between ${earlier} and ${later}. ${compared.reason ?? ''}`.trim()
  const words = {
    better: `${later} is better`,
    worse: `${later} is worse`,
    same: `${later} is the same as ${earlier}`,
    undecided: `Undecided between ${earlier} and ${later}`,
  }
  return `${words[verdict ?? 'undecided']}: ${describeFigures(compared, head.rate, difference, false)}`
}

type Side = { commit: string; change: Change | null; rate: Estimate | null }

/** Two commits of one pull request are told apart by their hashes. */
export function nameSides(base: Side, head: Side): { base: string; head: string } {
  const nameOf = ({ commit, change }: Side) => nameChange(change ?? { commit_sha: commit, pr_number: null })
  const names = { base: nameOf(base), head: nameOf(head) }
  if (names.base !== names.head) return names
  return { base: nameOf({ ...base, change: null }), head: nameOf({ ...head, change: null }) }
}

function describeFigures(compared: Omit<Compared, 'rate'>, rate: Estimate, difference: Estimate, isOver: boolean) {
  const { verdict, signals_needed } = compared
  const { from, to, points, low, high } = showDifference(rate, difference)
  const between = isUnknown(difference) ? '' : `, between ${low} and ${high}`
  const figures = `${from} → ${to} % positive (${points} points${between}).`
  if (verdict !== 'undecided') return figures
  if (isOver) return `${figures} It was live too short to tell.`
  if (signals_needed === null) return `${figures} A million more signals would not decide it.`
  return `${figures} About ${signals_needed.toLocaleString('en-GB')} more signals would decide it.`
}

const capitalise = (text: string): string => text.charAt(0).toUpperCase() + text.slice(1)
