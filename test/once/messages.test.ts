import { expect, test } from 'bun:test'
import { exampleTitledEntry } from '../../src/history/schema.ts'
import { comparisonKinds, describeChange, describeLive, describeRateChange } from '../../src/impact/sentence.ts'
import { describeEvent, type WebhookEvent } from '../../src/webhooks/message.ts'

const prompt = { id: 'pmt_greeting', name: 'greeting' }
const change = { id: 42, ...exampleTitledEntry, action: 'pr_merged', title: 'Warmer tone' } as const
const direct = { ...change, action: 'deployed', pr_number: null, pr_url: null, title: null } as const
const impact = {
  change,
  window: { from: change.created_at, until: null },
  signals: { positive: 1174, negative: 314, total: 1488, by_commit: 0, by_time: 1488 },
  rate: { value: 0.789, low: 0.77, high: 0.81 },
  difference: { value: 0.19, low: 0.088, high: 0.293 },
  verdict: 'better',
  signals_needed: null,
  base: null,
  wander: null,
} as const
const rateChange = {
  ...{ from: '2026-11-08', until: '2026-11-14' },
  before: { value: 0.7, low: 0.69, high: 0.71 },
  after: { value: 0.6, low: 0.57, high: 0.63 },
  difference: { value: -0.1, low: -0.152, high: -0.048 },
}
const usage = { organisation: { id: 'org_1', name: 'Acme' }, month: '2026-11', used: 8_012, limit: 10_000 }

type Given = { [T in WebhookEvent['type']]: [type: T, data: Extract<WebhookEvent, { type: T }>['data']] }
const eventOf = ([type, data]: Given[WebhookEvent['type']]) =>
  ({ id: 'msg_1', timestamp: new Date(0), type, data }) as WebhookEvent

const shown = (...given: Given[WebhookEvent['type']]) => describeEvent(eventOf(given), 'https://prompts.example.com')

test('a message says what is known in its first line, and links the pull request and the console', () => {
  const events = [
    shown('impact.decided', { ...impact, prompt, sentence: describeChange(impact) }),
    shown('change.live', { prompt, change, sentence: describeLive(change) }),
    shown('change.live', { prompt, change: direct, sentence: describeLive(direct) }),
    shown('rate.changed', { ...rateChange, prompt, change, sentence: describeRateChange(rateChange) }),
    shown('usage.threshold', { ...usage, threshold: 80 }),
    shown('usage.threshold', { ...usage, threshold: 100, used: 10_000 }),
    shown('ping', {}),
  ]
  const console = '<https://prompts.example.com/prompts/pmt_greeting?change=42|View in console>'
  const pull = '<https://github.com/example/prompts/pull/7|PR #7>'
  const usagePage = '<https://prompts.example.com/usage|View usage>'
  expect(events.map(({ text }) => text.split('\n'))).toEqual([
    [
      `▲ *greeting*: Better since ${pull}: 59.9 → 78.9 % positive (+19.0 points, between +8.8 and +29.3).`,
      `Warmer tone, by Ada Example · 1,488 signals · ${comparisonKinds.beforeAfter} · ${console}`,
    ],
    [`*greeting*: ${pull} went live: Warmer tone`, `Ada Example on main · ${console}`],
    ['*greeting*: 45c48cc went live', `Ada Example on main · ${console}`],
    [
      '▼ *greeting*: Changed, but not in git: 70.0 → 60.0 % positive from 2026-11-08 to 2026-11-14 (−10.0 points, between −15.2 and −4.8).',
      `${pull} is still live · ${console}`,
    ],
    [
      '*Acme* has used 80 % of its signals for this month: 8,012 of 10,000. At 10,000, new signals are rejected until 1 December.',
      usagePage,
    ],
    ['*Acme* has used all 10,000 of its signals for this month. New signals are rejected until 1 December.', usagePage],
    ['Test message from prompt-signals: this endpoint works.'],
  ])
  expect(events[2]?.blocks).toEqual([
    { type: 'section', text: { type: 'mrkdwn', text: '*greeting*: 45c48cc went live' } },
    {
      type: 'context',
      elements: [
        { type: 'mrkdwn', text: 'Ada Example on main' },
        { type: 'mrkdwn', text: console },
      ],
    },
  ])
  const unnamed = describeEvent(eventOf(['change.live', { prompt, change: direct, sentence: '' }]), '')
  expect(unnamed.text).toBe('*greeting*: 45c48cc went live\nAda Example on main')
})

test('no string of a client mentions a channel, forges a link or makes a block too long', () => {
  const hostile = `<!channel> @all [click](https://example.org) & <https://example.org|click>\n${'<'.repeat(123)}😀${'<'.repeat(300)}`
  const user = { ...change.user, name: hostile }
  for (const pr_url of ['https://example.com/|x><!here>', `https://example.com/${'<'.repeat(2_000)}`]) {
    const own = { ...change, title: hostile, user, branch_name: hostile, pr_url }
    const named = { prompt: { ...prompt, name: hostile } }
    const messages = [
      shown('change.live', { ...named, change: own, sentence: '' }),
      shown('change.live', { ...named, change: { ...own, ...direct, commit_sha: hostile }, sentence: '' }),
      shown('impact.decided', {
        ...impact,
        ...named,
        change: own,
        sentence: describeChange({ ...impact, change: own }),
      }),
      shown('usage.threshold', { ...usage, organisation: { id: 'org_1', name: hostile }, threshold: 80 }),
    ]
    for (const { text, blocks } of messages) {
      const texts = [...JSON.stringify(blocks).matchAll(/"text":"([^"]*)"/g)].map(([, one = '']) => one)
      expect(texts.filter((one) => one.length > 3_000)).toEqual([])
      for (const one of [text, ...texts]) {
        const links = [...one.matchAll(/<[^<>]*>/g)].map(String)
        expect(links.filter((link) => !/^<https:\/\/(prompts\.)?example\.com\/[^|<>\s]*\|[^|]+>$/.test(link))).toEqual(
          [],
        )
        expect(one.replaceAll(/<[^<>]*>/g, '')).not.toMatch(/[<>]|@\w|\]\(/)
        expect(one.isWellFormed()).toBe(true)
      }
    }
  }
})
