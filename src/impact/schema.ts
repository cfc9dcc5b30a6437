import { type Static, Type } from '@sinclair/typebox'
import { exampleTitledEntry, HistoryEntry } from '../history/schema.ts'
import { cursorPageOf } from '../lib/cursor_page.ts'
import { numberedPageOf } from '../lib/numbered_page.ts'
import { nullable } from '../lib/typebox.ts'
import { examplePrompt, Prompt } from '../prompts/schema.ts'

export const estimate = Type.Object({
  value: Type.Number(),
  low: Type.Number({ description: 'Lower end of its interval' }),
  high: Type.Number({ description: 'Upper end of its interval' }),
})

export const rate = nullable(
  estimate,
  'Share of positive signals, from 0 to 1, with its 95 % interval; null without signals',
)
export const count = Type.Integer({ format: 'int64' })
export const date = Type.String({ format: 'date', description: 'A day, UTC' })
const time = Type.String({ format: 'date-time' })

export const verdictNames = ['better', 'worse', 'same', 'undecided'] as const

// One flat union: OpenAPI 3.0 allows null in an enum only if the enum lists it.
export const verdict = Type.Union([...verdictNames.map((name) => Type.Literal(name)), Type.Null()], {
  description:
    'same: the whole interval of the difference is within the margin; better or worse: otherwise, and it excludes zero; ' +
    'undecided: none of these; null for the first change',
})

const impact = {
  change: HistoryEntry,
  window: Type.Object(
    { from: time, until: nullable(time, 'Null while it is live') },
    { title: 'LiveWindow', description: 'When the change was live' },
  ),
  signals: Type.Object(
    {
      positive: count,
      negative: count,
      total: count,
      by_commit: { ...count, description: 'Signals that name its commit in metadata.commit_sha' },
      by_time: { ...count, description: 'Signals that name no change, recorded while it was live' },
    },
    { title: 'ChangeSignals', description: 'The signals that belong to the change' },
  ),
  rate,
  difference: nullable(
    estimate,
    'Its rate minus that of the change before, from -1 to 1, with an interval that stays valid however often one looks; ' +
      'null for the first change, and while either change has no signals',
  ),
  verdict,
  signals_needed: nullable(
    count,
    'About how many more signals of the change would decide it at the current rates; null when it is decided, or when no ' +
      'number would be enough',
  ),
  effective: nullable(
    Type.Object({
      signals: { ...count, description: 'Its signals divided by the design effect' },
      design_effect: Type.Number({
        minimum: 1,
        description: 'How many signals count as one, because signals of a day and of days in a row are not independent',
      }),
    }),
    'What the interval counts; null without a difference',
  ),
}

export const Impact = Type.Object(impact, { title: 'Impact' })

export type Impact = Static<typeof Impact>

const exampleImpact = {
  change: { id: 42, ...exampleTitledEntry },
  window: { from: '2026-11-14T23:35:00.000Z', until: null },
  signals: { positive: 350, negative: 150, total: 500, by_commit: 320, by_time: 180 },
  rate: { value: 0.7, low: 0.658432, high: 0.738518 },
  difference: { value: -0.1, low: -0.219893, high: 0.020845 },
  verdict: 'undecided',
  signals_needed: 1600,
  effective: { signals: 500, design_effect: 1 },
}

export const ImpactPage = numberedPageOf(Impact, 'ImpactPage', [exampleImpact], {
  properties: { prompt: Prompt },
  example: { prompt: examplePrompt },
})

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
    latest: nullable(Type.Object(impact), 'The live change, compared with the one before it; null without changes'),
    recent: RecentSignals,
  },
  { title: 'PromptImpact' },
)

export const PromptImpactList = cursorPageOf(
  PromptImpact,
  {
    prompt: examplePrompt,
    latest: exampleImpact,
    recent: {
      positive: 750,
      negative: 250,
      total: 1000,
      rate: { value: 0.75, low: 0.72224, high: 0.775847 },
      days: [{ date: '2026-11-15', positive: 37, negative: 12 }],
    },
  },
  {
    sorted_at: Type.Optional(
      Type.String({ format: 'date-time', description: 'With sort: when the order was read, at most some seconds ago' }),
    ),
  },
)

/** Bounds the memory and the time of a sort. */
export const maxSortedPrompts = 50_000
