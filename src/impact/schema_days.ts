import { type Static, Type } from '@sinclair/typebox'
import { exampleTitledEntry, HistoryEntry } from '../history/schema.ts'
import { envelopeOf, nullable } from '../lib/typebox.ts'
import { count, date, estimate, verdict } from './schema.ts'

const day = Type.Object(
  {
    date,
    positive: { ...count, description: 'Positive signals of the change on this day' },
    negative: { ...count, description: 'Negative signals of the change on this day' },
    difference: nullable(
      estimate,
      'By its signals up to the end of this day, and all of the change before it; null without any of these',
    ),
    verdict,
    design_effect: nullable(Type.Number({ minimum: 1 }), 'How many signals counted as one; null without a difference'),
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
    change: HistoryEntry,
    before: nullable(Type.Object(HistoryEntry.properties), 'The change before; null for the first'),
    days: Type.Array(day, {
      description: 'The days on which the change has signals, oldest first, at most the last 366',
    }),
    health: Type.Object(
      {
        before: nullable(health, 'Null for the first change'),
        change: health,
        jumps: Type.Array(
          Type.Object({
            date,
            signals: count,
            usual: { ...count, description: 'Median of the 7 days before' },
          }),
          { description: 'Days from which on both changes together had three times the usual signals, or a third' },
        ),
      },
      { title: 'DataHealth', description: 'What to look at before believing a difference' },
    ),
  },
  { title: 'ChangeDays' },
)

export type ChangeDays = Static<typeof ChangeDays>

export const ChangeDaysAnswer = envelopeOf(ChangeDays, 'ChangeDaysAnswer', {
  change: { id: 42, ...exampleTitledEntry },
  before: null,
  days: [{ date: '2026-11-15', positive: 350, negative: 150, difference: null, verdict: null, design_effect: null }],
  health: {
    before: null,
    change: { days: 1, signals: 500, named: 0.64 },
    jumps: [{ date: '2026-11-12', signals: 900, usual: 280 }],
  },
})
