import { expect, test } from 'bun:test'
import { createRandom } from '../../src/cli/demo_data.ts'
import { describeChange, describeSides, showDifference } from '../../src/impact/sentence.ts'

type Side = Parameters<typeof describeSides>[0]['base']
const pull = { commit_sha: '45c48cce2e2d', pr_number: 7 }
const deploy = { commit_sha: '8f14e45fceea', pr_number: null }
const rate = { value: 0.78124, low: 0.76, high: 0.8 }
const difference = { value: 0.14876, low: 0.0599, high: 0.2312 }
const live = {
  change: pull,
  window: { until: null },
  rate,
  difference,
  verdict: 'better' as const,
  signals_needed: null,
}
const figures = '63.2 → 78.1 % positive (+14.9 points, between +6.0 and +23.1).'

test.each([
  [{}, `Higher since PR #7: ${figures}`],
  [{ verdict: 'worse' as const, change: deploy }, `Lower since 8f14e45: ${figures}`],
  [{ change: { commit_sha: 'release-12', pr_number: null } }, `Higher since release-12: ${figures}`],
  [
    { change: { commit_sha: 'release-2026-11-14-hotfix-12', pr_number: null } },
    `Higher since release-202…14-hotfix-12: ${figures}`,
  ],
  [
    { verdict: 'same' as const, window: { until: '2026-11-15' } },
    `No difference that matters while PR #7 was live: ${figures}`,
  ],
  [
    { verdict: 'undecided' as const },
    `Not decided since PR #7: ${figures} A million more signals would not decide it.`,
  ],
  [
    { verdict: 'undecided' as const, signals_needed: 3_500 },
    `Not decided since PR #7: ${figures} About 3,500 more signals would decide it.`,
  ],
  [{ difference: null, verdict: null }, 'Since PR #7: 78.1 % positive. There is no earlier change to compare with.'],
  [{ rate: null, difference: null }, 'No signals since PR #7.'],
])('before and after, a sentence claims no cause: %#', (some, expected) => {
  expect(describeChange({ ...live, ...some })).toBe(expected)
})

test('a change that is compared with another than the one before it names that one', () => {
  expect(describeChange(live, deploy)).toBe(`Higher since PR #7, compared with 8f14e45: ${figures}`)
  const withoutSignals = { ...live, difference: null, verdict: 'undecided' as const }
  expect(describeChange(withoutSignals, deploy)).toBe('Since PR #7: 78.1 % positive. 8f14e45 has no signals.')
})

test.each([
  ['better' as const, `PR #7 is better: ${figures}`],
  ['worse' as const, `PR #7 is worse: ${figures}`],
  ['same' as const, `No difference that matters between 8f14e45 and PR #7: ${figures}`],
])('side by side, it may say that one is %s', (verdict, expected) => {
  const base = { commit: deploy.commit_sha, change: null, rate }
  const head = { commit: pull.commit_sha, change: pull, rate }
  const compared = { base, head, difference, verdict, signals_needed: null, reason: null }
  expect(describeSides(compared)).toBe(expected)
  expect(describeSides({ ...compared, difference: null, reason: 'The head has no signals.' })).toBe(
    'Not decided between 8f14e45 and PR #7. The head has no signals.',
  )
})

test('side by side, two commits of one pull request are told apart', () => {
  const [base, head] = [deploy, pull].map(({ commit_sha: commit }) => ({ commit, change: pull, rate })) as [Side, Side]
  const compared = { base, head, difference, verdict: 'better' as const, signals_needed: null, reason: null }
  expect(describeSides(compared)).toBe(`45c48cc is better: ${figures}`)
})

test('an end of the interval stays on its side of zero', () => {
  const worse = { value: -0.1, low: -0.2, high: -0.0003 }
  expect(showDifference(rate, worse)).toMatchObject({ points: '−10.0', low: '−20.0', high: '−0.0' })
  const undecided = { value: 0.1, low: -0.0003, high: 0.2 }
  expect(showDifference(rate, undecided)).toMatchObject({ points: '+10.0', low: '−0.0', high: '+20.0' })
  expect(showDifference(rate, { value: 0, low: 0, high: 0 })).toMatchObject({
    points: '+0.0',
    low: '+0.0',
    high: '+0.0',
  })
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
