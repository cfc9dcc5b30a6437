import type { ApiError, LimitedBy } from '../errors.ts'
import type { Month } from '../lib/months.ts'

/** What is left of the month, as the RateLimit header fields say it. */
export const limitHeaders = (used: number, limit: number, month: Month): Record<string, string> => ({
  'ratelimit-policy': `"signals";q=${limit};w=${month.lengthSeconds}`,
  ratelimit: `"signals";r=${Math.max(limit - used, 0)};t=${month.secondsLeft}`,
})

/** An error to return: throwing one would cost more than the rest of such a request. */
export const monthlyLimitReached = (
  used: number,
  limit: number,
  month: Month,
  limitedBy: LimitedBy = 'organisation_month',
): ApiError => ({
  code: 'rate_limited',
  message:
    limitedBy === 'key_month'
      ? `This month's ${limit} signals of this API key are used up. Wait until resets_at, or raise the limit of the key.`
      : `This month's ${limit} signals are used up. Wait until resets_at, or move to a larger plan.`,
  context: { limited_by: limitedBy, limit, used, resets_at: month.resetsAt },
  headers: { ...limitHeaders(used, limit, month), 'retry-after': String(month.secondsLeft) },
})
