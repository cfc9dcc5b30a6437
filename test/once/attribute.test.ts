import { expect, test } from 'bun:test'
import fc from 'fast-check'
import { attribute, boundsOf, type ChangeWindow, type NamedCount } from '../../src/impact/attribute.ts'
import { changeOf, type Sent } from '../impact/rule.ts'

const at = (minute: number) => new Date(Date.UTC(2026, 9, 1, 0, minute)).toISOString()
/** Short strings of two letters, so that many are prefixes of others. */
const commit = fc.string({ unit: fc.constantFrom('a', 'b'), minLength: 5, maxLength: 9 })
const minute = fc.integer({ min: 0, max: 6 }).map(at)
const sent: fc.Arbitrary<Sent> = fc.record({
  value: fc.constantFrom('positive' as const, 'negative' as const),
  commit: fc.option(commit, { nil: undefined }),
  at: minute,
})
const changes = fc.array(fc.record({ commit_sha: commit, created_at: minute }), { maxLength: 8 })

/** All windows of the changes, oldest first. */
function windowsOf(given: { commit_sha: string; created_at: string }[]): ChangeWindow[] {
  const sorted = given.toSorted((a, b) => a.created_at.localeCompare(b.created_at))
  return sorted.map(({ commit_sha, created_at }, index) => ({
    id: index + 1,
    commit_sha,
    created_at: new Date(created_at),
    live_until: sorted[index + 1] ? new Date((sorted[index + 1] as { created_at: string }).created_at) : null,
    is_last_of_commit: sorted.findLastIndex((later) => later.commit_sha === commit_sha) === index,
  }))
}

test('every signal belongs to the change that it names, else to the one live at its time', () => {
  fc.assert(
    fc.property(changes, fc.array(sent, { maxLength: 30 }), fc.nat(), (given, signals, pick) => {
      const all = windowsOf(given)
      // A page has some of the changes, and the others still count for what a string names.
      const page = all.filter((_, index) => (pick >> index) % 2 === 0)
      const bounds = boundsOf(page).map((bound) => bound.toISOString())
      const commits = all.map(({ commit_sha }) => commit_sha).toSorted()
      const counted = signals.map(
        ({ value, commit: text, at: time }): Omit<NamedCount, 'text'> & { text: unknown } => ({
          number: bounds.filter((bound) => bound <= time).length,
          positive: value === 'positive' ? 1 : 0,
          negative: value === 'negative' ? 1 : 0,
          text,
          first_commit: commits.find((one) => one >= String(text)) ?? null,
          last_commit: commits.findLast((one) => one <= `${text}~`) ?? null,
        }),
      )
      const named = counted.filter((count): count is NamedCount => count.text !== undefined)

      const oldestFirst = all.map((one) => ({ ...one, created_at: one.created_at.toISOString() }))
      const owners = signals.map((signal) => ({ signal, owner: changeOf(oldestFirst, signal) }))
      const expected = page.map(({ id }) => {
        const own = owners.filter(({ owner }) => owner?.change.id === id)
        const positive = own.filter(({ signal }) => signal.value === 'positive').length
        const by_commit = own.filter(({ owner }) => owner?.isNamed).length
        return [id, { positive, negative: own.length - positive, by_commit }] as const
      })
      expect(attribute(page, counted, named)).toEqual(new Map(expected))
    }),
    { numRuns: 2_000, seed: Number(process.env.TEST_SEED ?? 15) },
  )
})

test('a prefix counts in characters, not in UTF-16 units', () => {
  const [change] = windowsOf([{ commit_sha: '😀😀😀😀1234', created_at: at(0) }]) as [ChangeWindow]
  const named = (text: string) => {
    const count = {
      number: 1,
      positive: 1,
      negative: 0,
      first_commit: change.commit_sha,
      last_commit: change.commit_sha,
    }
    return attribute([change], [count], [{ ...count, text }]).get(change.id)?.by_commit
  }
  expect(named('😀😀😀😀12')).toBe(0)
  expect(named('😀😀😀😀123')).toBe(1)
})
