import { expect, test } from 'bun:test'
import { findNews, findWrongChanges, type PlacedEntry } from '../../src/history/changes.ts'
import { permutationsOf } from '../github/hook.ts'

const now = new Date('2026-11-14T12:00:00Z')
const minutesAgo = (minutes: number) => new Date(now.getTime() - minutes * 60_000)

/** An entry in short: its commit, `!` if it is known as a change, and where it did not go live on main, that. */
const placed = (text: string, index: number): PlacedEntry => {
  const [commit = '', where = 'main'] = text.split(' ')
  return {
    id: index + 1,
    action: where === 'opened' ? 'pr_opened' : 'deployed',
    branch_name: where === 'opened' ? 'topic' : where,
    commit_sha: commit.replace('!', ''),
    created_at: minutesAgo(100 - index),
    is_change: commit.endsWith('!'),
  }
}

test.each<[string, string[], string | null, number[]]>([
  ['nothing', [], 'main', []],
  ['every entry that went live with another commit', ['a', 'b', 'a'], 'main', [1, 2, 3]],
  ['no entry that repeats the commit, in any letter case', ['a!', 'A!', 'a!'], 'main', [2, 3]],
  ['no entry of another branch', ['a!', 'b! release', 'c', 'c! opened'], 'main', [2, 3, 4]],
  ['entries of every branch, if none is the live one', ['a!', 'b release', 'a'], null, [2, 3]],
  ['not what is right', ['a!', 'b opened', 'b!', 'b'], 'main', []],
])('corrects %s', (_, texts, liveBranch, expected) => {
  const entries = texts.map(placed)
  for (const order of permutationsOf(entries)) {
    expect(findWrongChanges(order, liveBranch).map(({ id }) => id)).toEqual(expected)
  }
})

test('entries whose predecessor is not known stay, and decide what follows them', () => {
  const entries = ['a', 'a!', 'b', 'b!'].map(placed)
  expect(findWrongChanges(entries, null, new Set([2, 3, 4])).map(({ id }) => id)).toEqual([2, 3, 4])
})

test.each<[string, number[], number, number | undefined]>([
  ['the newest change', [5, 2], 2, 2],
  ['a change that a newer one overtook within ten minutes', [9], 1, 9],
  ['no older change that was overtaken', [11], 1, undefined],
  ['a change of yesterday that is still the newest', [1_440], 1_440, 1_440],
  ['nothing older', [1_441], 1_441, undefined],
])('announces %s', (_, added, newest, expected) => {
  const entries = added.map((minutes) => {
    return { ...placed('a!', 0), id: minutes, created_at: minutesAgo(minutes) }
  })
  const repeated = { ...placed('a', 0), id: 99, created_at: now }
  expect(findNews([...entries, repeated], newest, now)?.id).toBe(expected)
})
