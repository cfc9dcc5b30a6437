import { type Static, Type } from '@sinclair/typebox'
import type { ApiError, LimitedBy } from '../errors.ts'
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

const inThousands = new Intl.NumberFormat('en')

/** The RateLimit header fields for what is left of the month. */
export const limitHeaders = ({ used, limit }: Usage, month: Month): Record<string, string> => ({
  'ratelimit-policy': `"signals";q=${limit};w=${month.lengthSeconds}`,
  ratelimit: `"signals";r=${Math.max(limit - used, 0)};t=${month.secondsLeft}`,
})

/** The error for a full month. It is returned, because throwing it would cost more than the rest of the request. */
export function monthlyLimitReached(
  { used, limit }: Usage,
  month: Month,
  limitedBy: LimitedBy = 'organisation_month',
): ApiError {
  const all = `all ${inThousands.format(limit)} of its signals for this month`
  return {
    code: 'rate_limited',
    message:
      limitedBy === 'key_month'
        ? `This API key has used ${all}. Wait until resets_at, or raise the limit of the key.`
        : `This organisation has used ${all}. Wait until resets_at, or move to a larger plan.`,
    context: { limited_by: limitedBy, limit, used, resets_at: month.resetsAt },
    headers: { ...limitHeaders({ used, limit }, month), 'retry-after': String(month.secondsLeft) },
  }
}
