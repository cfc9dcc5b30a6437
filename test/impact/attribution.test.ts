import { expect, test } from 'bun:test'
import fc from 'fast-check'
import { useService } from '../use.ts'
import { addSignals, type Change, changeOf, deployed, merged, metadataOf, rollUp, type Sent } from './history.ts'

type Shown = { change: Change & { action: string }; signals: Record<string, number> }

const service = useService()

async function readAll(prompt: string, key: string, limit: number): Promise<Shown[]> {
  const shown: Shown[] = []
  for (let page = 1; ; page += 1) {
    const { status, body } = await service.get(`/prompts/${prompt}/impact?page=${page}&limit=${limit}`, key)
    expect(status).toBe(200)
    shown.push(...body.data)
    if (page >= body.pagination.total_pages) return shown
  }
}

/** The signals of a change as they are listed, without their ids. */
async function readSignals(prompt: string, key: string, change: number, limit: number) {
  const found: object[] = []
  for (let cursor = ''; ; ) {
    const { status, body } = await service.get(
      `/prompts/${prompt}/signals?change=${change}&limit=${limit}${cursor}`,
      key,
    )
    expect(status).toBe(200)
    found.push(...body.data.map(({ id, ...signal }: { id: number }) => signal))
    if (body.pagination.next_cursor === null) return found
    cursor = `&cursor=${body.pagination.next_cursor}`
  }
}

/** What the rule says of each change, newest first. */
function expectedOf(changes: Change[], signals: Sent[]) {
  const oldestFirst = changes.toReversed()
  const owned = signals.map((signal) => ({ ...signal, ...changeOf(oldestFirst, signal) }))
  return changes.map(({ id }) => {
    const own = owned.filter(({ change }) => change?.id === id)
    const total = own.length
    const positive = own.filter(({ value }) => value === 'positive').length
    const by_commit = own.filter(({ isNamed }) => isNamed).length
    const listed = own
      .map(({ value, commit, at }) => ({ value, metadata: metadataOf(commit), created_at: at }))
      .reverse()
      .toSorted((a, b) => (a.created_at > b.created_at ? -1 : Number(a.created_at < b.created_at)))
    const counts = { positive, negative: total - positive, total, by_commit, by_time: total - by_commit }
    return { id, signals: counts, listed }
  })
}

const minute = 60_000
const start = Date.UTC(2026, 8, 30, 23, 0)
/** Times that often coincide, lie on the bounds of the counts, or a millisecond beside them. */
const time = fc
  .tuple(fc.constantFrom(0, 1, 14, 15, 16, 59, 60, 75, 600, 1_440, 2_000, 4_321), fc.constantFrom(-1, 0, 0, 1))
  .map(([minutes, ms]) => new Date(start + minutes * minute + ms).toISOString())

const wholeOf = (begin: string) => begin.padEnd(40, '0')

/** Commits that begin alike, to the sixth, seventh and last character; one that is the begin of another; other names. */
const commits = [
  ...[wholeOf('abcdef0123456789'), wholeOf('abcdef0123456788'), 'abcdef1123456789', 'abcdef0', '1234567890'],
  ...['2345678a', 'release-12', 'v1', 'ünï-12345', '😀😀😀😀1234'],
]
const others = [
  ...['abcdef', 'abcdef01', 'abcdef012345678', 'abcdef11', wholeOf('ABCDEF0123456789'), wholeOf('1234567890')],
  ...['abcdef01234567890', '1234567', '2345678', 'release-1', 'release-123', '123456', 'V1', 'v', 'unknown-9', '', 7],
]
/** Only hashes may be shortened. */
const astral = ['😀😀😀😀12', '😀😀😀😀123']
/** Texts of two letters, hashes among them, so that many begin others, or lie between a commit and what it begins with. */
const alike = fc
  .tuple(fc.string({ unit: fc.constantFrom('a', 'b'), minLength: 6, maxLength: 10 }), fc.boolean())
  .map(([text, isWhole]) => (isWhole ? wholeOf(text) : text))

const change = fc
  .tuple(fc.oneof(fc.constantFrom(...commits), alike), time, fc.integer({ min: 0, max: 4 }))
  .map(([commit, at, kind]) => {
    if (kind === 3) return { ...merged(commit, at, 3), action: 'pr_opened' as const }
    return kind === 0 ? deployed(commit, at) : merged(commit, at, kind)
  })

const signal: fc.Arbitrary<Sent> = fc.record({
  value: fc.constantFrom<Sent['value']>('positive', 'negative'),
  commit: fc.option(fc.oneof(fc.constantFrom<unknown>(...commits, ...others, ...astral), alike), { nil: undefined }),
  at: time,
})

/** Few, so that many signals could name two changes. */
const seeds = process.env.TEST_SEED ? [Number(process.env.TEST_SEED)] : [15, 16, 17]

test.each(seeds)(
  'every signal belongs to the change that it names, else to the one live at its time, and is listed so (seed %i)',
  async (seed) => {
    const history = fc.record({
      changes: fc.array(change, { maxLength: 9 }),
      signals: fc.array(signal, { maxLength: 40 }),
      counted: fc.array(fc.integer({ min: 1, max: 20 }), { maxLength: 2 }),
      /** How many of the changes are recorded after the signals. */
      late: fc.integer({ min: 0, max: 3 }),
      limit: fc.integer({ min: 1, max: 4 }),
    })
    await fc.assert(
      fc.asyncProperty(history, async ({ changes, signals, counted, late, limit }) => {
        const { prompt, key } = await service.createTenant()
        await service.addHistory(prompt, changes.slice(late))
        await addSignals(service, prompt, signals)
        for (const number of counted) await rollUp(service, prompt, number)
        await service.addHistory(prompt, changes.slice(0, late))
        const shown = await readAll(prompt, key, limit)
        const found: object[] = []
        for (const { change, signals } of shown) {
          found.push({ id: change.id, signals, listed: await readSignals(prompt, key, change.id, limit + 2) })
        }
        const live = shown.map(({ change }) => change)
        expect(found).toEqual(expectedOf(live, signals))
      }),
      { numRuns: 30, seed },
    )
  },
)
