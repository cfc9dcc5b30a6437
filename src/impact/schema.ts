import { type Static, Type } from '@sinclair/typebox'
import { exampleTitledEntry, HistoryEntry, liveActions } from '../history/schema.ts'
import { entryFilterParams } from '../history/schema_params.ts'
import { cursorPageOf, cursorPageParams } from '../lib/cursor_page.ts'
import { numberedPageOf, numberedPageParams } from '../lib/numbered_page.ts'
import { choiceParam, defineParams, idParam, limitParam, pageParam, param, type QueryOf } from '../lib/params.ts'
import { nullable } from '../lib/typebox.ts'
import { examplePrompt, Prompt, promptFilterParams } from '../prompts/schema.ts'

export const defaultMargin = 0.05

export const marginParam = param(
  Type.Unsafe<number>({
    type: 'number',
    minimum: 0,
    maximum: 1,
    exclusiveMaximum: true,
    description: 'The smallest difference that matters. A difference that certainly lies within it counts as the same.',
  }),
  // At most six digits after the point, like the rates that it is compared with.
  (text) => (/^(0|0?\.\d{1,6})$/.test(text) ? Number(text) : undefined),
  'a number from 0 to less than 1, such as 0.05',
  defaultMargin,
)

const entryParam = (which: string) =>
  idParam(`Id of the history entry of the ${which} change.`, 'the id of a history entry')

const filterParams = entryFilterParams(liveActions)

export const impactParams = defineParams(
  {
    ...numberedPageParams,
    ...filterParams,
    margin: marginParam,
    base: entryParam('earlier'),
    head: entryParam('later'),
  },
  ({ base, head, ...query }, reject, given) => {
    if (head !== null && !given.has('base')) reject('base', 'must be given with head')
    if (base !== null && !given.has('head')) reject('head', 'must be given with base')
    if (base !== null && base === head) reject('head', 'must be another change than base')
    if (base === null || head === null) return { ...query, pair: null }
    for (const name of Object.keys(filterParams) as (keyof typeof filterParams)[]) {
      if (query[name] !== null) reject(name, 'must not be given with base and head')
    }
    return { ...query, page: pageParam.fallback, limit: limitParam.fallback, pair: { base, head } }
  },
)

export type ImpactQuery = QueryOf<typeof impactParams>

export type Pair = NonNullable<ImpactQuery['pair']>

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

const base = nullable(
  Type.Object(
    {
      ...Type.Pick(HistoryEntry, ['id', 'commit_sha', 'pr_number', 'pr_url']).properties,
      title: nullable(Type.String(), 'Null if the entry has none'),
      skipped: { ...count, description: 'How many changes between them had too few signals to compare with' },
    },
    { title: 'ImpactBase' },
  ),
  'What the change is compared with: the nearest earlier change with at least 50 signals, of the ten before it and of 90 days, else ' +
    'the change before it; null for the first change',
)

export const Impact = Type.Object(
  {
    change: HistoryEntry,
    base,
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
      'Its rate minus that of its base, from -1 to 1, with an interval that stays valid however often one looks, and is -1 to ' +
        '1 while there are too few signals; null for the first change, and while either change has no signals',
    ),
    verdict,
    signals_needed: nullable(
      count,
      'About how many more signals of the change would decide it at the current rates; null when it is decided, when the ' +
        'change is no longer live, or when no number would be enough',
    ),
    wander: nullable(
      Type.Object({
        points: Type.Number({ minimum: 0, description: 'Standard deviation of the daily rate, in percentage points' }),
        days: { ...count, description: 'The days of the prompt that tell it, at most 90' },
      }),
      'How much the rate wanders from day to day without changes, which the interval allows for; null without a difference',
    ),
  },
  { title: 'Impact' },
)

export type Impact = Static<typeof Impact>

export const exampleImpact = {
  change: { id: 42, ...exampleTitledEntry },
  base: {
    id: 41,
    commit_sha: '8f14e45fceea167a5a36dedd4bea2543f1c0a9d2',
    pr_number: null,
    pr_url: null,
    title: 'Greet',
    skipped: 0,
  },
  window: { from: '2026-11-14T23:35:00.000Z', until: null },
  signals: { positive: 350, negative: 150, total: 500, by_commit: 320, by_time: 180 },
  rate: { value: 0.7, low: 0.658432, high: 0.738518 },
  difference: { value: -0.1, low: -0.219893, high: 0.020845 },
  verdict: 'undecided',
  signals_needed: 1600,
  wander: { points: 1.72, days: 21 },
}

const RateChange = Type.Object(
  {
    from: { ...date, description: 'The first of the last 7 complete days, UTC' },
    until: { ...date, description: 'The last of them' },
    before: { ...estimate, description: 'Rate of up to 60 days before these' },
    after: { ...estimate, description: 'Rate of these days' },
    difference: { ...estimate, description: 'after minus before' },
  },
  { title: 'RateChange' },
)

export const ImpactPage = numberedPageOf(Impact, 'ImpactPage', [exampleImpact], {
  properties: {
    prompt: Prompt,
    rate_changed: nullable(
      RateChange,
      'The rate of the live change moved in the last 7 days, and nothing in git did; null if not, or if data lacks that change',
    ),
  },
  example: { prompt: examplePrompt, rate_changed: null },
})

const sorts = ['last_change', 'name', 'rate', 'signals', 'effect'] as const

export type Sort = Exclude<(typeof sorts)[number], 'effect'>

export const overviewParams = defineParams({
  ...cursorPageParams,
  margin: marginParam,
  ...promptFilterParams,
  sort: choiceParam(
    sorts,
    'last_change: most recently changed first; name: alphabetical; rate: lowest rate of the last 30 days first; ' +
      'signals: most signals in the last 30 days first; effect: by the live change, worse first, then better, same and ' +
      'undecided, the largest difference first. Without it, newest prompts first; with show, last_change.',
  ),
  show: choiceParam(
    ['signals', 'worse', 'better'],
    'Only prompts with signals in the last 30 days; worse, better: of these, only those whose live change has this verdict.',
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
    latest: nullable(Type.Object(Impact.properties), 'The live change, compared with its base; null without changes'),
    rate_changed: nullable(RateChange, 'The rate of the live change moved in the last 7 days, and nothing in git did'),
    recent: RecentSignals,
  },
  { title: 'PromptImpact' },
)

export const PromptImpactList = cursorPageOf(PromptImpact, {
  prompt: examplePrompt,
  latest: exampleImpact,
  rate_changed: null,
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
/** The same where the live changes of all are compared. */
export const maxComparedPrompts = 500
