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
    'PR #7 by Ada made it better: 40.0 → 90.0 % positive (+50.0 points, between +25.8 and +70.3), 100 signals.',
    '',
    'verdict   difference                                  positive            signals  needed  change             id  user  created_at                title',
    '▲ better  +50.0 (+25.8…+70.3)            ┊   ├──●──┤  90.0 % (82.6…94.5)      100       -  merged #7 45c48cc   2  Ada   2026-10-10T09:00:00.000Z  Warmer',
    '-         -                                           40.0 % (30.9…49.8)      100       -  deployed 8f14e45    1  Ada   2026-10-01T09:00:00.000Z  -',
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
