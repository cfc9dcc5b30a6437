import { expect, test } from 'bun:test'
import { markdownStyle, readReport, writeReport } from '../../src/cli/report.ts'
import { exampleTitledEntry } from '../../src/history/schema.ts'
import type { ChangeImpact } from '../../src/impact/schema_changes.ts'
import type { Call } from '../../src/lib/rest.ts'

const changeOf = (id: number, verdict: ChangeImpact['verdict'], more = {}): ChangeImpact => ({
  prompt: { id: 'pmt_a', name: 'a', repository: null, path: null },
  sentence: 'Better since PR #7: it is.',
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

const all = { since: new Date('2026-11-01T00:00:00.000Z'), prompt: null, pr: null, commit: null }

const reportOf = (changes: ChangeImpact[], query = {}, complete = true) =>
  writeReport({ changes, moved: [], complete }, { ...all, since: new Date(0), ...query }, markdownStyle, '')

test('a report reads every page, and a change that two show, because another was recorded meanwhile, once', async () => {
  const recorded = [changeOf(1, 'worse'), changeOf(2, 'better')]
  const paths: string[] = []
  const service: Call = async (_, path) => {
    paths.push(path)
    recorded.push(changeOf(recorded.length + 1, 'better'))
    const body = { data: recorded.slice(-3), pagination: { total_pages: 2 }, complete: paths.length === 1 }
    return { status: 200, text: '', body }
  }
  const { changes, complete } = await readReport(service, { ...all, prompt: 'pmt_a', commit: '45c48cc' })
  expect([changes.map(({ change }) => change.id), complete]).toEqual([[1, 2, 3, 4], false])
  const query = 'since=2026-11-01T00%3A00%3A00.000Z&prompt=pmt_a&commit=45c48cc&limit=100'
  expect(paths).toEqual([`/changes?${query}&page=1`, `/changes?${query}&page=2`])
})

test('changes without signals are one line, unless one pull request is asked for, and a cut is said', () => {
  const silent = {
    ...changeOf(2, 'undecided'),
    signals: { positive: 0, negative: 0, total: 0, by_commit: 0, by_time: 0 },
  }
  const linesOf = (...given: Parameters<typeof reportOf>) =>
    reportOf(...given)
      .split('\n\n')
      .slice(0, -1)
  expect(linesOf([changeOf(1, 'better'), silent], {}, false)).toEqual([
    '**Prompt changes since 1970-01-01: 1 better**',
    expect.stringMatching(/^- ▲ .*2 signals$/s),
    '1 change has no signals yet.',
    'Only the newest 2 changes are compared.',
  ])
  expect(linesOf([silent])[0]).toBe('**Prompt changes since 1970-01-01: none with signals**')
  const merged = changeOf(1, 'worse', { pr_url: 'https://gitlab.com/acme/prompts/-/merge_requests/7' })
  expect(linesOf([merged], { pr: '7' })[0]).toBe('**This merge request: 1 worse**')
  expect(linesOf([silent], { pr: '7', since: null })).toEqual([
    '**This pull request: 1 undecided**',
    expect.stringMatching(/^- \? .*0 signals$/s),
  ])
})

test('a report of a time names the rates that changed, but not in git', async () => {
  const estimate = (value: number) => ({ value, low: value - 0.05, high: value + 0.05 })
  const rate_changed = {
    ...{ from: '2026-11-08', until: '2026-11-14' },
    ...{ before: estimate(0.75), after: estimate(0.55), difference: estimate(-0.2) },
  }
  const prompt = (name: string) => ({ id: `pmt_${name}`, name })
  const overview = [
    { prompt: prompt('a'), rate_changed },
    { prompt: prompt('b'), rate_changed: null },
    { prompt: prompt('ab'), rate_changed },
  ]
  const service: Call = async (_, path) => {
    const data = path === '/impact?sort=signals&limit=100' || path.startsWith('/impact?search=a&') ? overview : []
    return { status: 200, text: '', body: { data, pagination: { total_pages: 1 } } }
  }
  const namesOf = async (query: object) =>
    (await readReport(service, { ...all, ...query })).moved.map(({ prompt }) => prompt.name)
  expect([await namesOf({}), await namesOf({ prompt: 'a' }), await namesOf({ pr: '7' })]).toEqual([
    ['a', 'ab'],
    ['a'],
    [],
  ])
  const text = writeReport(
    { changes: [], moved: overview.slice(0, 1), complete: true },
    all,
    markdownStyle,
    'https://p',
  )
  expect(text.split('\n').slice(0, 4)).toEqual([
    '**Prompt changes since 2026-11-01: none with signals**',
    '',
    '- ▼ **a**: Changed, but not in git: 75.0 → 55.0 % positive from 2026-11-08 to 2026-11-14 (−20.0 points, between −25.0 and −15.0).  ',
    '  no change went live on these days · [console](<https://p/prompts/pmt_a>)',
  ])
})

test('no string of a client is Markdown, notifies anybody or forges a link', () => {
  const hostile = '@ada <b>|*x*_[y](https://example.org)`\n# head'
  const change = changeOf(1, 'better', { title: hostile, pr_url: 'https://example.com/>)<b>' })
  const text = reportOf([{ ...change, prompt: { ...change.prompt, name: hostile } }])
  const escaped = '@\u200bada \\<b\\>\\|\\*x\\*\\_\\[y\\](https://example.org)\\` # head'
  expect(text.split('\n').slice(2, 4)).toEqual([
    `- ▲ **${escaped}**: Better since [PR #7](<https://example.com/%3E)%3Cb%3E>): it is.  `,
    `  ${escaped}, by Ada Example · 2 signals`,
  ])
  for (const title of ['# head', ' - item', '+ item', '1. item', '2) item']) {
    const html = Bun.markdown.html(reportOf([changeOf(1, 'better', { title })]))
    expect(html.match(/<h\d|<[uo]l/g)).toEqual(['<ul'])
    expect(html).toContain(`${title.trim()}, by Ada Example`)
  }
  const single = { ...change, signals: { ...change.signals, total: 1 } }
  expect(reportOf([single])).toMatch(/ · 1 signal$/m)
  const many = reportOf(Array(103).fill(change))
  expect(many).toContain('103 better')
  expect(many.match(/^- /gm)?.length).toBe(100)
  expect(many).toContain('And 3 more.')
})
