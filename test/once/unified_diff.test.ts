import { expect, test } from 'bun:test'
import { applyPatch } from 'diff'
import { unifiedDiff } from '../../src/history/diff.ts'

const lines = (count: number, word: string) =>
  Array.from({ length: count }, (_, index) => `${word} ${index}`).join('\n')

test.each([
  ['a change in the middle', 'a\nb\nc\n', 'a\nB\nc\n'],
  ['no newline at the end', 'a\nb', 'a\nb\n'],
  ['a text from nothing', '', 'a\n'],
  ['a text to nothing', 'a', ''],
  ['other ends of lines', 'a\r\nb\r\n', 'a\nb\n'],
  ['more lines than are compared', lines(3_000, 'old'), lines(2_000, 'new')],
  ['every line of two large texts', `${lines(5_000, 'old')}\n`, `${lines(5_000, 'new')}\n`],
])('the diff of %s makes the later text of the earlier one', (_, before, after) => {
  expect(applyPatch(before, unifiedDiff('a.md', before, after))).toBe(after)
})

test('a text with more than 200 removed and added lines is replaced as a whole', () => {
  const [before, after] = [lines(400, 'old'), lines(400, 'new')].map((text) => text.split('\n'))
  const changed = (count: number) => [...(after ?? []).slice(0, count), ...(before ?? []).slice(count)].join('\n')
  const removedOf = (count: number) => unifiedDiff('a.md', changed(0), changed(count)).match(/^-old/gm)?.length
  expect([100, 101].map(removedOf)).toEqual([100, 400])
})

test('equal texts have an empty diff, and the slowest pair of texts takes no longer than a blink', () => {
  expect(unifiedDiff('a.md', 'a', 'a')).toBe('')
  const startedAt = process.cpuUsage().user
  unifiedDiff('a.md', 'a\n'.repeat(32_768), 'b\n'.repeat(32_768))
  expect((process.cpuUsage().user - startedAt) / 1_000).toBeLessThan(500)
})
