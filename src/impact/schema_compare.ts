import { type Static, Type } from '@sinclair/typebox'
import { exampleTitledEntry, HistoryEntry } from '../history/schema.ts'
import { envelopeOf, literals, nullable } from '../lib/typebox.ts'
import { count, date, estimate, verdictNames } from './schema.ts'

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
      'Rate of the head minus that of the base, with an interval that stays valid however often one looks; null without a day of both',
    ),
    verdict: literals(verdictNames, { description: 'As for a change; undecided without a day of both' }),
    signals_needed: nullable(
      count,
      'About how many more signals of both would decide it at the current rates and share; null when it is decided, or when no number would be enough',
    ),
    reason: nullable(Type.String(), 'Why there is no difference; null if there is one'),
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
