import { expect, test } from 'bun:test'
import { createRandom } from '../../src/cli/demo_data.ts'
import { describeChange, describeLive, describeSides, nameAuthors, showDifference } from '../../src/impact/sentence.ts'

type Side = Parameters<typeof describeSides>[0]['base']
const pull = { commit_sha: '45c48cce2e2d', pr_number: 7 }
const deploy = { commit_sha: '8f14e45fceea', pr_number: null }
const rate = { value: 0.78124, low: 0.76, high: 0.8 }
const difference = { value: 0.14876, low: 0.0599, high: 0.2312 }
const live = {
  change: pull,
  base: { ...deploy, skipped: 0 },
  window: { until: null },
  rate,
  difference,
  verdict: 'better' as const,
  signals_needed: null,
}
const figures = '63.2 → 78.1 % positive (+14.9 points, between +6.0 and +23.1).'

test.each<[Partial<Parameters<typeof describeChange>[0]>, string]>([
  [{}, `Better since PR #7: ${figures}`],
  [
    { change: { ...pull, pr_url: 'https://gitlab.com/acme/prompts/-/merge_requests/7' } },
    `Better since MR !7: ${figures}`,
  ],
  [{ verdict: 'worse', change: deploy }, `Worse since 8f14e45: ${figures}`],
  [{ change: { ...deploy, commit_sha: 'release-12' } }, `Better since release-12: ${figures}`],
  [
    { change: { ...deploy, commit_sha: 'release-2026-11-14-hotfix-12' } },
    `Better since release-202…14-hotfix-12: ${figures}`,
  ],
  [{ verdict: 'same', window: { until: '2026-11-15' } }, `Same while PR #7 was live: ${figures}`],
  [{ verdict: 'undecided' }, `Undecided since PR #7: ${figures} A million more signals would not decide it.`],
  [
    { verdict: 'undecided', signals_needed: 3_500 },
    `Undecided since PR #7: ${figures} About 3,500 more signals would decide it.`,
  ],
  [
    { verdict: 'undecided', window: { until: '2026-11-15' } },
    `Undecided while PR #7 was live: ${figures} It was live too short to tell.`,
  ],
  [
    { verdict: 'undecided', difference: { value: 0.14876, low: -1, high: 1 }, signals_needed: 40 },
    'Undecided since PR #7: 63.2 → 78.1 % positive (+14.9 points). About 40 more signals would decide it.',
  ],
  [
    { base: { ...deploy, skipped: 3 } },
    `Better since PR #7, compared with 8f14e45 (3 changes between them had too few signals): ${figures}`,
  ],
  [
    { base: null, difference: null, verdict: null },
    'Since PR #7: 78.1 % positive. There is no earlier change to compare with.',
  ],
  [{ difference: null, verdict: 'undecided' }, 'Since PR #7: 78.1 % positive. The change before it has no signals.'],
  [{ rate: null, difference: null }, 'No signals since PR #7.'],
])('before and after, a sentence claims no cause: %#', (some, expected) => {
  expect(describeChange({ ...live, ...some })).toBe(expected)
})

test.each([
  [[], 'Marge'],
  [['Marge'], 'Marge'],
  [['Ada'], 'Ada, merged by Marge'],
  [['Ada', 'Marge'], 'Ada and Marge'],
  [['Ada', 'Bob', 'Eve'], 'Ada, Bob and Eve, merged by Marge'],
  [['Ada', 'Bob', 'Eve', 'Kim', 'Lee'], 'Ada, Bob and 3 others, merged by Marge'],
])('the authors %j of what Marge merged are named first', (authors, expected) => {
  expect(nameAuthors({ user: { name: 'Marge' }, authors })).toBe(expected)
})

test('a change that goes live is named as its host does', () => {
  const merge = { ...pull, pr_url: 'https://git.example.com/acme/prompts/-/merge_requests/7', title: 'Warmer' }
  expect([merge, pull, deploy].map(describeLive)).toEqual([
    'MR !7 went live: Warmer',
    'PR #7 went live',
    '8f14e45 went live',
  ])
})

test('a change that was compared with a chosen one names that one', () => {
  expect(describeChange(live, true)).toBe(`Better since PR #7, compared with 8f14e45: ${figures}`)
  const withoutSignals = { ...live, difference: null, verdict: 'undecided' as const }
  expect(describeChange(withoutSignals, true)).toBe('Since PR #7: 78.1 % positive. 8f14e45 has no signals.')
})

const verdicts = {
  better: `PR #7 is better: ${figures}`,
  worse: `PR #7 is worse: ${figures}`,
  same: `PR #7 is the same as 8f14e45: ${figures}`,
}

test('side by side, it may say that one is better', () => {
  const base: Side = { commit: deploy.commit_sha, change: null, rate }
  const head: Side = { commit: pull.commit_sha, change: pull, rate }
  const compared = { base, head, difference, verdict: 'better' as const, signals_needed: null, reason: null }
  const shown = Object.keys(verdicts).map((verdict) => describeSides({ ...compared, verdict: verdict as 'better' }))
  expect(shown).toEqual(Object.values(verdicts))
  expect(describeSides({ ...compared, difference: null, reason: 'The head has no signals.' })).toBe(
    'Undecided between 8f14e45 and PR #7. The head has no signals.',
  )
  // Two commits of one pull request are told apart.
  expect(describeSides({ ...compared, base: { ...base, change: pull } })).toBe(`45c48cc is better: ${figures}`)
})

test.each([
  [
    { value: -0.1, low: -0.2, high: -0.0003 },
    { points: '−10.0', low: '−20.0', high: '−0.0' },
  ],
  [
    { value: 0.1, low: -0.0003, high: 0.2 },
    { points: '+10.0', low: '−0.0', high: '+20.0' },
  ],
  [
    { value: 0, low: 0, high: 0 },
    { points: '+0.0', low: '+0.0', high: '+0.0' },
  ],
])('an end of the interval stays on its side of zero: %j', (given, shown) => {
  expect(showDifference(rate, given)).toMatchObject(shown)
})

test('the numbers that are shown add up', () => {
  const random = createRandom(1)
  for (let round = 0; round < 1_000; round += 1) {
    const [before, after] = [random(), random()]
    const value = after - before
    const shown = showDifference({ ...rate, value: after }, { value, low: value - 1e-6, high: value + 1e-6 })
    const [from, to, points, low, high] = [shown.from, shown.to, shown.points, shown.low, shown.high].map((text) =>
      Number(text.replace('−', '-')),
    ) as [number, number, number, number, number]
    expect(from + points).toBeCloseTo(to, 9)
    expect(low <= points && points <= high).toBeTrue()
  }
})
