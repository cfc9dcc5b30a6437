import { expect, test } from 'bun:test'
import { markdownStyle, type ReportedChange, readReport, writeReport } from '../../src/cli/report.ts'
import type { Call } from '../../src/cli/rest.ts'
import { exampleTitledEntry } from '../../src/history/schema.ts'

const changeOf = (id: number, verdict: ReportedChange['verdict'], more = {}): ReportedChange => ({
  prompt: { id: 'pmt_a', name: 'a' },
  change: { id, ...exampleTitledEntry, action: 'pr_merged', created_at: `2026-11-0${id}T00:00:00.000Z`, ...more },
  window: { from: '', until: null },
  signals: { positive: 1, negative: 1, total: 2, by_commit: 0, by_time: 2 },
  rate: { value: 0.5, low: 0.1, high: 0.9 },
  difference: { value: 0.1, low: 0, high: 0.2 },
  verdict,
  signals_needed: null,
  base: null,
  wander: null,
})

type Json = Record<string, unknown>

/** A service whose prompts and changes are these. */
const serviceOf =
  (listPrompts: (cursor: string | null) => Json, readImpact: (prompt: string, page: number) => Json): Call =>
  async (_, path) => {
    const { pathname, searchParams } = new URL(path, 'http://localhost')
    const [, , prompt = ''] = pathname.split('/')
    const body = prompt ? readImpact(prompt, Number(searchParams.get('page'))) : listPrompts(searchParams.get('cursor'))
    return { status: 200, text: '', body }
  }

const pageOf = (id: string, data: ReportedChange[], pages = 1) => ({
  prompt: { id, name: id },
  data,
  pagination: { total_pages: pages },
})
const listOf = (names: Record<string, ReportedChange>, next_cursor: string | null) => ({
  data: Object.entries(names).map(([name, latest]) => ({ prompt: { id: name, name }, latest })),
  pagination: { next_cursor },
})

const all = { since: new Date('2026-11-01'), prompt: null, pullRequest: null, commit: null }

const idsOf = async (call: Call, query = {}) =>
  (await readReport(call, { ...all, ...query })).map(({ change }) => change.id)

test('a report reads every page of the prompts that changed, and shows bad news first', async () => {
  const changes = [changeOf(1, 'undecided'), changeOf(2, 'better'), changeOf(3, 'worse'), changeOf(4, 'better')]
  const queries: string[] = []
  const [latest, old] = [changeOf(5, null), changeOf(1, null, { created_at: '2026-10-01T00:00:00.000Z' })]
  const service = serviceOf(
    (cursor) => {
      queries.push(`prompts ${cursor}`)
      return cursor ? listOf({ b: latest, c: old, d: latest }, 'never') : listOf({ a: latest }, 'next')
    },
    (prompt, page) => {
      queries.push(`${prompt} ${page}`)
      return prompt === 'a'
        ? pageOf(prompt, page === 1 ? changes.slice(1) : changes.slice(0, 1), 2)
        : pageOf(prompt, [])
    },
  )
  expect(await idsOf(service)).toEqual([3, 4, 2, 1])
  expect(queries).toEqual(['prompts null', 'prompts next', 'a 1', 'a 2', 'b 1'])
  const created_at = changes[3]?.change.created_at
  const commits = ['45c48cc', 'release-12', 'release-1']
  changes.splice(1, 3, ...commits.map((commit_sha, index) => changeOf(index + 2, 'same', { commit_sha, created_at })))
  expect(await idsOf(service, { commit: '45c48cce2e2d7fbdea1afc51c7c6ad26b0d94e12' })).toEqual([2])
  expect(await idsOf(service, { commit: 'release-1' })).toEqual([4])
  // Of the same time, in the order of the impact.
  expect(await idsOf(service)).toEqual([2, 3, 4, 1])
})

test('a prompt that changes while others are read is not left out', async () => {
  const listed = ['a', 'b']
  const service = serviceOf(
    (cursor) => {
      const id = listed[Number(cursor)]
      return listOf(id ? { [id]: changeOf(1, null) } : {}, cursor ? null : '1')
    },
    (id) => {
      // It is now the first of the list.
      listed.reverse().splice(1)
      return pageOf(id, [changeOf(id === 'a' ? 1 : 2, 'worse')])
    },
  )
  expect(await idsOf(service)).toEqual([2, 1])
})

test('a change that pages show twice, because another was recorded meanwhile, is reported once', async () => {
  const recorded = [changeOf(1, 'worse'), changeOf(2, 'better')]
  const service = serviceOf(
    () => ({}),
    (id) => {
      recorded.push(changeOf(recorded.length + 1, 'better'))
      return pageOf(id, recorded.slice(-3), 2)
    },
  )
  expect(await idsOf(service, { prompt: 'a' })).toEqual([1, 4, 3, 2])
})

test('no string of a client is Markdown, notifies anybody or forges a link', () => {
  const hostile = '@ada <b>|*x*_[y](https://example.org)`\n# head'
  const change = changeOf(1, 'better', { title: hostile, pr_url: 'https://example.com/>)<b>' })
  const text = writeReport([{ ...change, prompt: { id: 'pmt_a', name: hostile } }], new Date(0), markdownStyle, '')
  const escaped = '@\u200bada \\<b\\>\\|\\*x\\*\\_\\[y\\](https://example.org)\\` # head'
  expect(text.split('\n').slice(2, 4)).toEqual([
    `- ▲ **${escaped}**: Better since [PR #7](<https://example.com/%3E)%3Cb%3E>): 40.0 → 50.0 % positive (+10.0 points, between +0.0 and +20.0).  `,
    `  ${escaped}, by Ada Example · 2 signals`,
  ])
  for (const title of ['# head', ' - item', '+ item', '1. item', '2) item']) {
    const html = Bun.markdown.html(writeReport([changeOf(1, 'better', { title })], new Date(0), markdownStyle, ''))
    expect(html.match(/<h\d|<[uo]l/g)).toEqual(['<ul'])
    expect(html).toContain(`${title.trim()}, by Ada Example`)
  }
  const single = { ...change, signals: { ...change.signals, total: 1 } }
  expect(writeReport([single], new Date(0), markdownStyle, '')).toMatch(/ · 1 signal$/m)
  const many = writeReport(Array(103).fill(change), new Date(0), markdownStyle, '')
  expect(many).toContain('103 better')
  expect(many.match(/^- /gm)?.length).toBe(100)
  expect(many).toContain('And 3 more.')
})
