import { type Static, Type } from '@sinclair/typebox'
import type { Month } from '../lib/months.ts'
import { envelopeOf, nullable } from '../lib/typebox.ts'

export const UsageReport = envelopeOf(
  Type.Object(
    {
      plan: Type.String(),
      month: Type.String({ pattern: '^\\d{4}-\\d{2}$', description: 'The current month, UTC' }),
      limit: Type.Integer({ description: 'The monthly signal limit' }),
      used: Type.Integer({ description: 'Signals recorded in the month. Erasing a signal does not lower it' }),
      remaining: Type.Integer(),
      resets_at: Type.String({ format: 'date-time', description: 'When the counter resets: the next month, UTC' }),
      days: Type.Array(
        Type.Object({ date: Type.String({ format: 'date' }), total: Type.Integer() }, { title: 'UsageDay' }),
        { description: 'Signals per day, from the first of the month to today, UTC. Erased ones do not count' },
      ),
      prompts: Type.Array(
        Type.Object(
          {
            prompt: Type.String(),
            name: Type.String(),
            repository: nullable(Type.String(), 'The repository that the prompt is linked to'),
            total: Type.Integer(),
          },
          { title: 'UsagePrompt' },
        ),
        { description: 'The 100 prompts with the most signals this month, in descending order' },
      ),
      other_prompts: Type.Object(
        { prompts: Type.Integer({ description: 'The number of prompts that are not listed' }), total: Type.Integer() },
        { description: 'All other prompts together' },
      ),
    },
    { title: 'UsageData' },
  ),
  'Usage',
  {
    plan: 'team',
    month: '2026-11',
    limit: 10_000,
    used: 321,
    remaining: 9_679,
    resets_at: '2026-12-01T00:00:00.000Z',
    days: [
      { date: '2026-11-01', total: 12 },
      { date: '2026-11-02', total: 309 },
    ],
    prompts: [{ prompt: 'pmt_greeting', name: 'greeting', repository: 'acme/prompts', total: 321 }],
    other_prompts: { prompts: 0, total: 0 },
  },
)

export type UsageReport = Static<typeof UsageReport>

export type Usage = { used: number; limit: number }

export type UsageMonth = { organisationId: number; month: Month }
