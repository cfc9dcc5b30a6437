import type { ApiError, LimitedBy } from '../errors.ts'
import type { Month } from '../lib/months.ts'
import type { Usage } from './schema.ts'

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
