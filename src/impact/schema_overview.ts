import { type Static, Type } from '@sinclair/typebox'
import { cursorPageOf, cursorPageParams } from '../lib/cursor_page.ts'
import { choiceParam, defineParams, type QueryOf } from '../lib/params.ts'
import { nullable } from '../lib/typebox.ts'
import { examplePrompt, Prompt, promptFilterParams } from '../prompts/schema.ts'
import { count, date, exampleImpact, Impact, marginParam, rate } from './schema.ts'

const sorts = ['last_change', 'name', 'rate', 'signals'] as const

export type Sort = (typeof sorts)[number]

export const overviewParams = defineParams({
  ...cursorPageParams,
  margin: marginParam,
  ...promptFilterParams,
  sort: choiceParam(
    sorts,
    'last_change: most recently changed first; name: alphabetical; rate: lowest rate of the last 30 days first; ' +
      'signals: most signals in the last 30 days first. Without it, newest prompts first.',
  ),
})

export type OverviewQuery = QueryOf<typeof overviewParams>

const day = Type.Object({ date, positive: count, negative: count }, { title: 'SignalDay' })

const RecentSignals = Type.Object(
  {
    positive: count,
    negative: count,
    total: count,
    rate,
    days: Type.Array(day, { description: 'The last 30 days, oldest first' }),
  },
  { title: 'RecentSignals', description: 'The signals of the last 30 days, of all changes' },
)

export type RecentSignals = Static<typeof RecentSignals>

const PromptImpact = Type.Object(
  {
    prompt: Prompt,
    latest: nullable(
      Type.Object(Impact.properties),
      'The live change, compared with the one before it; null without changes',
    ),
    recent: RecentSignals,
  },
  { title: 'PromptImpact' },
)

export const PromptImpactList = cursorPageOf(PromptImpact, {
  prompt: examplePrompt,
  latest: exampleImpact,
  recent: {
    positive: 750,
    negative: 250,
    total: 1000,
    rate: { value: 0.75, low: 0.72224, high: 0.775847 },
    days: [{ date: '2026-11-15', positive: 37, negative: 12 }],
  },
})

/** Bounds the time of a sort. */
export const maxSortedPrompts = 50_000
