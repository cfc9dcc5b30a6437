import { beforeAll, expect, test } from 'bun:test'
import { createOutput } from '../../src/cli/output.ts'
import { isColourWanted } from '../../src/config.ts'
import { type Row, run } from '../program.ts'
import { entry } from '../service.ts'
import { useProgram } from '../use.ts'

const { client, operator, server, settings, tenant } = useProgram()
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

const sides = (base: string, head: string) => ['compare', '--prompt', prompt, '--base', base, '--head', head]

test.each([
  ['a better change passes', () => ['impact', '--prompt', prompt, '--fail-on', 'worse,undecided'], 0],
  ['a better version passes', () => [...sides('8f14e45', '45c48cc'), '--fail-on', 'worse'], 0],
  ['a worse version fails', () => [...sides('45c48cc', '8f14e45'), '--fail-on', 'worse'], 1],
  ['an unknown version is undecided', () => [...sides('45c48cc', 'abcdef0'), '--fail-on', 'worse,undecided'], 1],
  ['undecided is not worse', () => [...sides('45c48cc', 'abcdef0'), '--fail-on', 'worse'], 0],
  [
    'a change without one before it is undecided',
    () => ['impact', '--prompt', prompt, '--page', '2', '--limit', '1', '--fail-on', 'undecided'],
    1,
  ],
  ['an unknown verdict is wrong usage', () => ['impact', '--prompt', prompt, '--fail-on', 'bad'], 2],
])('--fail-on is the exit status of a gate: %s', async (_, args, wanted) => {
  for (const [place, own] of [
    [[], settings],
    [['--url', server.url], { PROMPT_SIGNALS_KEY: tenant.key }],
  ] as const) {
    const { status, stdout, stderr } = await run([...args(), ...place], { settings: own })
    expect(status).toBe(wanted)
    expect(stderr).toContain({ 0: '', 1: 'The verdict is', 2: '--fail-on must be' }[wanted] as string)
    if (wanted < 2) expect(stdout).toContain('signals')
  }
})

test('report of a prompt in another organisation fails', async () => {
  const { id } = await operator.one('orgs', 'create', '--name', 'Other', '--plan', 'free')
  const line = await operator.errorLine('report', '--org', id, '--prompt', prompt)
  expect(line).toBe(`There is no prompt ${prompt} in ${id}.`)
})

test('report shows the changes and their verdicts as text, Markdown and JSON, over the database and over REST', async () => {
  const where = ['report', '--since', '2026-10-05', '--org', tenant.org]
  const sentence = 'Higher since PR #7: 40.0 → 90.0 % positive (+50.0 points, between +24.7 and +71.1).'
  expect((await operator.plain(...where)).split('\n')).toEqual([
    'Prompt changes since 2026-10-05: 1 better',
    '',
    `▲ test: ${sentence}`,
    '  Warmer, by Ada · 100 signals',
    '',
    'Before and after, not an experiment: anything else that changed at the same time is included.',
    '',
  ])
  const remote = async (...args: string[]) => {
    const own = { PROMPT_SIGNALS_KEY: tenant.key }
    const { status, stdout, stderr } = await run(['report', '--url', server.url, ...args], { settings: own })
    expect({ status, stderr }).toEqual({ status: 0, stderr: '' })
    return stdout
  }
  const found = await operator.json(...where, '--pr', '7')
  expect(found).toMatchObject([{ prompt: { id: prompt, name: 'test' }, verdict: 'better', sentence }])
  expect(await remote('--format', 'json', '--pr', 'https://example.com/7')).toBe(`${JSON.stringify(found[0])}\n`)
  const id = found[0]?.change.id
  expect(
    (await remote('--commit', '45C48CC', '--prompt', prompt, '--format', 'markdown')).split('\n').slice(2, 4),
  ).toEqual([
    `- ▲ **test**: ${sentence.replace('PR #7', '[PR #7](<https://example.com/7>)')}  `,
    `  Warmer, by Ada · 100 signals · [console](<${server.url}/prompts/${prompt}?change=${id}>)`,
  ])
  expect(await remote('--pr', '8')).toMatch(/^No prompt changes since \d{4}-\d\d-\d\d\.\n$/)
})

test.each([
  [['report'], 'give --org, --url or --prompt'],
  [['report', '--org', 'x', '--url', 'http://x'], 'give either --org or --url'],
  [['report', '--org', 'x', '--pr', '7', '--commit', '45c48cc'], 'give either --pr or --commit'],
  [['report', '--org', 'x', '--since', 'soon'], '--since must be'],
  [['report', '--org', 'x', '--pr', 'seven'], '--pr must be'],
  [
    ['report', '--org', 'x', '--commit', 'abc123'],
    '--commit must be a hash, or at least its first 7 characters, not "abc123"',
  ],
  [['history', 'list', '--prompt', 'test', '--limit', '0'], '--limit must be'],
  [['impact', '--prompt', 'greeting', '--url', 'http://127.0.0.1:9'], '--prompt must be an id (pmt_…) with --url'],
])('wrong usage is named: %p', async (args, message) => {
  const { status, stderr } = await run(args, { settings: { ...settings, PROMPT_SIGNALS_KEY: tenant.key } })
  expect(stderr).toContain(message)
  expect(status).toBe(2)
})

test('what is no change of the prompt is rejected', async () => {
  expect(await operator.errorLine('impact', '--prompt', prompt, '--base', '1', '--head', '999')).toContain(
    'head must be',
  )
  expect(await operator.errorLine('impact', '--prompt', 'pmt_none')).toBe('There is no prompt pmt_none.')
})

test('a prompt without changes says how to record one', async () => {
  const { id } = await operator.one('prompts', 'create', '--org', tenant.org, '--name', 'unchanged')
  expect(await operator.plain('impact', '--prompt', id)).toBe(
    'No change has gone live yet. Record one with "prompt-signals history record" or "prompt-signals sync".\n',
  )
  expect(await operator.json('impact', '--prompt', id)).toEqual([])
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
