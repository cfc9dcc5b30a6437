import { type Static, Type } from '@sinclair/typebox'
import { exampleTitledEntry, HistoryEntry } from '../history/schema.ts'
import { defineParams, param, type QueryOf, timeParam } from '../lib/params.ts'
import { envelopeOf, literals, nullable } from '../lib/typebox.ts'
import { count, date, estimate, exampleImpact, Impact, marginParam, verdict, verdictNames } from './schema.ts'

const commitParam = (which: string) =>
  param(
    Type.String({
      minLength: 1,
      maxLength: 100,
      description: `Commit of the ${which}: a hash, or a unique beginning of one.`,
    }),
    (text) => (/^(?![\da-f]{1,6}$)\P{Cc}{1,100}$/iu.test(text) ? text : undefined),
    'the hash of a commit, or at least its first 7 characters, or another name',
  )

const shareParam = param(
  Type.Unsafe<number>({
    type: 'number',
    minimum: 0,
    exclusiveMinimum: true,
    maximum: 1,
    exclusiveMaximum: true,
    description: 'The share of users that get the head. If the split contradicts it, the verdict is undecided.',
  }),
  (text) => (/^0?\.(?!0+$)\d{1,6}$/.test(text) ? Number(text) : undefined),
  'a number between 0 and 1, such as 0.5',
)

export const compareParams = defineParams(
  {
    base: commitParam('version that is compared with'),
    head: commitParam('version that is compared'),
    since: timeParam('Only signals from this ISO 8601 time on.'),
    until: timeParam('Only signals before this ISO 8601 time.'),
    margin: marginParam,
    share: shareParam,
  },
  (query, reject, given) => {
    for (const name of ['base', 'head']) if (!given.has(name)) reject(name, 'must be given')
    if (query.since && query.until && query.since >= query.until) reject('since', 'must be before until')
    return { ...query, base: query.base ?? '', head: query.head ?? '' }
  },
)

export type CompareQuery = QueryOf<typeof compareParams>

const dayCounts = Type.Object({ positive: count, negative: count })

const side = Type.Object(
  {
    commit: Type.String({ description: 'The commit that was named, as long as it is known, in lower case' }),
    change: nullable(
      Type.Object(HistoryEntry.properties),
      'Its history entry, one that went live if there is one; null for a commit that is not in the history',
    ),
    signals: Type.Object({
      positive: count,
      negative: count,
      total: count,
      compared: { ...count, description: 'Those on days with signals of both sides' },
    }),
    rate: nullable(
      estimate,
      'Mean share of positive signals over the days of both, each weighted by n₁n₂/(n₁+n₂) for its signals n₁ and n₂; null ' +
        'without such a day',
    ),
  },
  { title: 'ComparedSide' },
)

const SideBySide = Type.Object(
  {
    base: side,
    head: side,
    difference: nullable(
      estimate,
      'Rate of the head minus that of the base, with an interval that stays valid however often one looks; null with a reason',
    ),
    verdict: literals(verdictNames, { description: 'As for a change; undecided without a difference' }),
    signals_needed: nullable(
      count,
      'About how many more signals of both would decide it at the current rates and share; null when it is decided, or when no number would be enough',
    ),
    reason: nullable(
      Type.String(),
      'Why there is no difference, such as a split that contradicts the expected share; null if there is one',
    ),
    notes: Type.Array(Type.String(), { description: 'What else to know, such as a side that has ended' }),
    overlap: Type.Object(
      { days: count, from: nullable(date, 'The first'), until: nullable(date, 'The last') },
      { description: 'The days with signals of both' },
    ),
    share: nullable(Type.Number({ minimum: 0, maximum: 1 }), 'The head’s share of the signals on these days'),
    days: Type.Array(Type.Object({ date, base: dayCounts, head: dayCounts }), {
      description: 'Every day with signals of either, oldest first. Those of one side do not count.',
    }),
  },
  { title: 'SideBySide' },
)

export type SideBySide = Static<typeof SideBySide>

export const SideBySideAnswer = envelopeOf(SideBySide, 'SideBySideAnswer', {
  base: {
    commit: '8f14e45fceea167a5a36dedd4bea2543f1c0a9d2',
    change: null,
    signals: { positive: 700, negative: 300, total: 1000, compared: 1000 },
    rate: { value: 0.7, low: 0.670876, high: 0.727593 },
  },
  head: {
    commit: exampleTitledEntry.commit_sha,
    change: { id: 42, ...exampleTitledEntry },
    signals: { positive: 800, negative: 200, total: 1000, compared: 1000 },
    rate: { value: 0.8, low: 0.774081, high: 0.823623 },
  },
  difference: { value: 0.1, low: 0.011727, high: 0.187789 },
  verdict: 'better',
  signals_needed: null,
  reason: null,
  notes: [],
  overlap: { days: 1, from: '2026-11-15', until: '2026-11-15' },
  share: 0.5,
  days: [{ date: '2026-11-15', base: { positive: 700, negative: 300 }, head: { positive: 800, negative: 200 } }],
})

export const daysParams = defineParams({ margin: marginParam })

const day = Type.Object(
  {
    date,
    positive: { ...count, description: 'Positive signals of the change on this day' },
    negative: { ...count, description: 'Negative signals of the change on this day' },
    difference: nullable(
      estimate,
      'By its signals up to the end of this day, and all of its base; null without any of these',
    ),
    verdict,
  },
  { title: 'ChangeDay' },
)

const health = Type.Object({
  days: { ...count, description: 'Days with signals' },
  signals: count,
  named: nullable(
    Type.Number({ minimum: 0, maximum: 1 }),
    'Share of the signals that name its commit; null without signals',
  ),
})

const ChangeDays = Type.Object(
  {
    ...Impact.properties,
    days: Type.Array(day, {
      description: 'The days on which the change has signals, oldest first, at most the last 366',
    }),
    health: Type.Object(
      {
        base: nullable(health, 'Null for the first change'),
        change: health,
      },
      { title: 'DataHealth', description: 'What to look at before believing a difference' },
    ),
  },
  { title: 'ChangeDays' },
)

export type ChangeDays = Static<typeof ChangeDays>

export const ChangeDaysAnswer = envelopeOf(ChangeDays, 'ChangeDaysAnswer', {
  ...exampleImpact,
  days: [{ date: '2026-11-15', positive: 350, negative: 150, difference: null, verdict: null }],
  health: {
    base: { days: 20, signals: 500, named: 1 },
    change: { days: 1, signals: 500, named: 0.64 },
  },
})
