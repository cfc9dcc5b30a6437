import { expect, test } from 'bun:test'
import { formatDistance } from '../../src/console/parts/format.ts'

const [second, minute, hour, day] = [1_000, 60_000, 3_600_000, 86_400_000]
const now = new Date(2026, 10, 15, 12).getTime()

test.each([
  [0, 'now'],
  [-59.4 * second, '59 seconds ago'],
  [-59.6 * second, '1 minute ago'],
  [-59.6 * minute, '1 hour ago'],
  // A key of 12 hours, a moment after it was made.
  [12 * hour - 2 * second, 'in 12 hours'],
  [-23.6 * hour, '1 day ago'],
  // From a day on, the day counts: both are of the same day.
  [-2.4 * day, '2 days ago'],
  [-1.6 * day, '2 days ago'],
  [-75.4 * day, '2 months ago'],
  [-77.4 * day, '3 months ago'],
  [-13 * day, '13 days ago'],
  [-14 * day, '2 weeks ago'],
  [30 * day - second, 'in 4 weeks'],
  [-60 * day, '2 months ago'],
  [-730 * day, '2 years ago'],
])('%p ms are told as "%s"', (ms, told) => {
  expect(formatDistance(new Date(now + ms), now)).toBe(told)
})
