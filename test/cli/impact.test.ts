import { beforeAll, expect, test } from 'bun:test'
import { createOutput } from '../../src/cli/output.ts'
import { isColourWanted } from '../../src/config.ts'
import type { Row } from '../program.ts'
import { entry } from '../service.ts'
import { useProgram } from '../use.ts'

const { client, operator, tenant } = useProgram()
let prompt: string

beforeAll(async () => {
  prompt = tenant.prompt
  const record = async (commit_sha: string, created_at: string, more = {}) => {
    const given = entry({ commit_sha, created_at, ...more })
    expect((await client.post(`/prompts/${prompt}/history`, tenant.key, given)).status).toBe(201)
  }
  await record('8f14e45fceea', '2026-10-01T09:00:00Z')
  const pull = { action: 'pr_merged', pr_number: 7, pr_url: 'https://example.com/7' }
  await record('45c48cce2e2d', '2026-10-10T09:00:00Z', { ...pull, title: 'Warmer' })
  const send = (value: string, commit_sha: string) =>
    client.postSignal(prompt, tenant.key, { value, metadata: { commit_sha } })
  const sent = Array.from({ length: 100 }, (_, index) => index)
  await Promise.all(sent.map((index) => send(index < 40 ? 'positive' : 'negative', '8f14e45')))
  await Promise.all(sent.map((index) => send(index < 90 ? 'positive' : 'negative', '45c48cc')))
})

test('impact says in a sentence what the last change did, and shows each in a line', async () => {
  const lines = (await operator.plain('impact', '--prompt', prompt)).split('\n')
  expect(lines).toEqual([
    'Higher since PR #7: 40.0 → 90.0 % positive (+50.0 points, between +24.7 and +71.1).',
    'Before and after, not an experiment: anything else that changed at the same time is included.',
    '',
    'verdict   difference                            positive  signals  id  change            date        title',
    '▲ better  +50.0 (+24.7…+71.1)         ┊ ├──●─┤    90.0 %      100   2  merged #7         2026-10-10  Warmer',
    '-         -                                       40.0 %      100   1  deployed 8f14e45  2026-10-01  -',
    '',
  ])
})

test('impact --json prints the changes as the interface shows them, also two that are compared', async () => {
  const [head, base] = await operator.json('impact', '--prompt', prompt)
  expect(head).toMatchObject({ change: { pr_number: 7 }, signals: { total: 100, by_commit: 100 }, verdict: 'better' })
  const ids = ['--base', String(head?.change.id), '--head', String(base?.change.id)]
  expect(await operator.json('impact', '--prompt', prompt, ...ids)).toMatchObject([
    { verdict: 'worse' },
    { verdict: null },
  ])
  expect(await operator.json('impact', '--prompt', prompt, '--limit', '1', '--page', '2')).toEqual([base as Row])
})

test('compare says in a sentence which version is better, and shows both', async () => {
  const sides = ['--prompt', prompt, '--base', '8f14e45', '--head', '45C48CC']
  const today = new Date().toISOString().slice(0, 10)
  expect((await operator.plain('compare', ...sides)).split('\n')).toEqual([
    'PR #7 is better: 40.0 → 90.0 % positive (+50.0 points, between +24.7 and +71.1).',
    'Side by side on the same days: what changes for both cancels out, if users are assigned at random.',
    '',
    'side  commit        change            signals  compared  positive',
    'base  8f14e45fceea  deployed 8f14e45      100       100    40.0 %',
    'head  45c48cce2e2d  merged #7             100       100    90.0 %',
    '',
    `Compared on 1 day, ${today} to ${today}.`,
    'Share of the head: 50.0 %.',
    '',
  ])
  const [shown] = await operator.json('compare', ...sides)
  expect(shown).toMatchObject({ verdict: 'better', overlap: { days: 1 }, days: [{ date: today }] })
})

test('what is no change of the prompt is rejected', async () => {
  expect(await operator.errorLine('impact', '--prompt', prompt, '--base', '1', '--head', '999')).toContain(
    'head must be',
  )
  expect(await operator.errorLine('impact', '--prompt', 'pmt_none')).toBe('There is no prompt pmt_none.')
})

test('a table is in colour where that is wanted, and aligned all the same', () => {
  const shown = (hasColour: boolean) => {
    let text = ''
    const output = createOutput(false, { out: (part) => (text += part), err() {}, hasColour })
    output.table(
      [{ n: 7 }, { n: 1_234 }],
      [
        { name: 'word', cell: ({ n }) => (n === 7 ? 'few' : 'many'), colour: ({ n }) => (n === 7 ? 'blue' : null) },
        { name: 'n', cell: ({ n }) => String(n), isNumber: true },
      ],
    )
    return text
  }
  expect(shown(false)).toBe('word     n\nfew      7\nmany  1234\n')
  expect(shown(true)).toBe('word     n\n\u001b[94mfew \u001b[0m     7\nmany  1234\n')
  expect([{}, { NO_COLOR: '' }, { NO_COLOR: '1' }, { TERM: 'dumb' }].map((one) => isColourWanted(one))).toEqual([
    true,
    true,
    false,
    false,
  ])
})
