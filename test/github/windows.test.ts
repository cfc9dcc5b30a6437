import { expect, test } from 'bun:test'
import { isInWindow, windowOf } from '../../src/github/push.ts'

const use = (number: number, state: string, closedAt: string | null, base_branch = 'main') => ({
  ...{ number, state: state as 'open' | 'merged' | 'closed', base_branch, head_branch: 'warmer', head_sha: 'head' },
  closed_at: closedAt === null ? null : new Date(`2026-01-01T${closedAt}Z`),
})

test.each<[string, ReturnType<typeof use>, ReturnType<typeof use>[], string]>([
  ['open for the first time: all', use(2, 'open', null), [], '10 11 12 13 14'],
  ['closed: those before', use(2, 'closed', '12:00'), [], '10 11 12'],
  ['after a merge into the same base: those since', use(2, 'open', null), [use(1, 'merged', '11:00')], '12 13 14'],
  ['after a merge into another base: all', use(2, 'open', null), [use(1, 'merged', '11:00', 'dev')], '10 11 12 13 14'],
  ['after it was closed unmerged: all', use(2, 'open', null), [use(1, 'closed', '11:00')], '10 11 12 13 14'],
  ['merged before a later merge: those before', use(2, 'merged', '12:00'), [use(3, 'merged', '13:00')], '10 11 12'],
  ['between two merges', use(2, 'merged', '13:00'), [use(1, 'merged', '10:00'), use(3, 'merged', '14:00')], '11 12 13'],
])('of the pushes to its branch, a pull request has, %s', (_, pr, others, expected) => {
  const window = windowOf(pr, [...others, pr])
  const at = (hour: string) => new Date(`2026-01-01T${hour}:00Z`)
  const hours = ['10', '11', '12', '13', '14'].filter((hour) => isInWindow({ at: at(hour), commitSha: hour }, window))
  expect(hours.join(' ')).toBe(expected)
  // A push may arrive after the end, at the latest with the head of the pull request.
  expect(isInWindow({ at: at('15'), commitSha: 'head' }, window)).toBeTrue()
})
