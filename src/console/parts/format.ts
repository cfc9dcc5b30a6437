// Numbers and times in the zone of the reader, and in English like the words around them.

/**
 * The reader's own English, if any: beside "+1.5 points", a German 1.505 would be read as one and a half. Some browsers
 * have an "en-US@posix", which `Intl` rejects. Outside of a browser, in tests, there are no languages.
 */
export const locale = navigator.languages?.find((one) => /^en(-[a-z\d]+)*$/i.test(one)) ?? 'en-GB'

const whole = new Intl.NumberFormat(locale)
const exact = new Intl.NumberFormat(locale, { minimumFractionDigits: 1, maximumFractionDigits: 1 })
const moment = new Intl.DateTimeFormat(locale, { dateStyle: 'medium', timeStyle: 'short' })
const day = new Intl.DateTimeFormat(locale, { dateStyle: 'medium' })
const utcDay = new Intl.DateTimeFormat(locale, { dateStyle: 'medium', timeZone: 'UTC' })
const relative = new Intl.RelativeTimeFormat(locale)
const now = new Intl.RelativeTimeFormat(locale, { numeric: 'auto' })

export const formatNumber = (value: number): string => whole.format(value)

/** A share from 0 to 1, as sentences have it; on one line. */
export const formatPercent = (share: number): string => `${whole.format(Math.round(share * 100))}\u00a0%`

/** The same beside a difference, which must add up to the eye. */
export const formatExactPercent = (share: number): string => `${exact.format(share * 100)}\u00a0%`

export const formatMoment = (time: string | Date): string => moment.format(new Date(time))

export const formatDay = (time: string | Date): string => day.format(new Date(time))

/** A calendar day, such as 2026-11-15, which has no zone. */
export const formatDate = (date: string): string => (date === '' ? '' : utcDay.format(new Date(date)))

/** Each unit with its length, and how many of it are too many: "13 days" says more than "2 weeks". */
const units = [
  ['second', 1_000, 60],
  ['minute', 60_000, 60],
  ['hour', 3_600_000, 24],
  ['day', 86_400_000, 14],
  ['week', 604_800_000, 9],
  ['month', 2_629_800_000, 24],
  ['year', 31_557_600_000, Number.POSITIVE_INFINITY],
] as const

/** As "2 days ago" or "in 3 hours", to the nearest. From a day on, whole days count: times of one day have one age. */
export function formatDistance(time: string | Date, from = Date.now()): string {
  const exact = new Date(time).getTime() - from
  const ms = Math.abs(exact) < dayMs ? exact : dayOf(time) - dayOf(from)
  if (Math.abs(ms) < 1_000) return now.format(0, 'second')
  const rounded = (length: number) => Math.sign(ms) * Math.round(Math.abs(ms) / length)
  const [unit, length] = units.find(([, length, tooMany]) => Math.abs(rounded(length)) < tooMany) ?? units[0]
  return relative.format(rounded(length), unit)
}

const dayMs = 86_400_000

/** The day by the reader's clock, as a time that no change of that clock shifts. */
function dayOf(time: string | number | Date): number {
  const date = new Date(time)
  return Date.UTC(date.getFullYear(), date.getMonth(), date.getDate())
}

/** "1 signal", "2 signals". */
export const countOf = (count: number, one: string, many = `${one}s`): string =>
  `${formatNumber(count)} ${count === 1 ? one : many}`
