import { expect, test } from 'bun:test'
import { nextStart, startsBetween } from '../../src/stats/intervals.ts'
import { type Interval, parseZone } from '../../src/stats/schema.ts'

/** The times are in UTC, without the year. */
test.each([
  ['day Europe/London 2026', 'a day of 23 hours', '03-28T12:00 03-30T12:00', '03-28T00:00 03-29T00:00 03-29T23:00'],
  [
    ...['hour Europe/London 2026', 'an hour that clocks show twice', '10-24T23:30 10-25T02:30'],
    '10-24T23:00 10-25T00:00 10-25T01:00 10-25T02:00',
  ],
  [
    ...['hour Australia/Lord_Howe 2026', 'clocks that are set back by half an hour', '04-04T14:00 04-04T17:00'],
    '04-04T14:00 04-04T15:00 04-04T15:30 04-04T16:30',
  ],
  [
    ...['hour Australia/Lord_Howe 2026', 'clocks that are set forward by half an hour', '10-03T14:30 10-03T16:30'],
    '10-03T14:30 10-03T15:30 10-03T16:00',
  ],
  [
    ...['day America/St_Johns 2010', 'clocks that were set back a minute after midnight', '11-07T03:00 11-08T12:00'],
    '11-07T02:30 11-08T03:30',
  ],
  [
    ...['hour America/St_Johns 2010', 'the same by hours', '11-07T01:30 11-07T04:00'],
    '11-07T01:30 11-07T02:30 11-07T02:31 11-07T03:30',
  ],
  [
    ...['day Pacific/Apia 2011', 'a day that a zone has skipped', '12-29T10:00 12-31T11:00'],
    '12-29T10:00 12-30T10:00 12-31T10:00',
  ],
  [
    ...['day America/Sao_Paulo 2018', 'a day whose first hour is skipped', '11-03T12:00 11-05T12:00'],
    '11-03T03:00 11-04T03:00 11-05T02:00',
  ],
  [
    ...['day America/Havana 2026', 'a midnight that comes twice', '10-31T12:00 11-02T12:00'],
    '10-31T04:00 11-01T04:00 11-02T05:00',
  ],
  [
    ...['week Europe/London 2026', 'weeks, which begin on Monday', '03-22T23:59 04-06T00:00'],
    '03-16T00:00 03-23T00:00 03-29T23:00 04-05T23:00',
  ],
  ['month Europe/London 2026', 'months', '02-28T23:59 04-30T23:00', '02-01T00:00 03-01T00:00 03-31T23:00'],
  [
    ...['day Africa/Monrovia 1972', 'a zone whose offset had seconds', '01-06T12:00 01-08T12:00'],
    '01-06T00:44:30.000Z 01-07T00:44:30.000Z 01-08T00:00',
  ],
])('by %s: %s', (by, _, span, expected) => {
  const [interval, zone, year] = by.split(' ') as [Interval, string, string]
  const [since, until] = span.split(' ').map((time) => new Date(`${year}-${time}Z`)) as [Date, Date]
  const starts = startsBetween(interval, zone, since, until, 1_001).map((start) => start.toISOString())
  expect(starts.map((start) => start.replace(`${year}-`, '').replace(':00.000Z', ''))).toEqual(expected.split(' '))
})

test('every span is covered once, in every zone and over every change of clocks', () => {
  for (const zone of Intl.supportedValuesOf('timeZone')) {
    for (const interval of ['hour', 'day', 'week', 'month'] as const) {
      const [since, until] = [new Date('2026-03-25T07:08:09.010Z'), new Date('2026-04-06T17:18:19.020Z')]
      const found = startsBetween(interval, zone, since, until, 1_001)
      expect(found[0]?.getTime()).toBeLessThanOrEqual(since.getTime())
      expect(found.every((start, index) => index === 0 || (start > since && start < until))).toBe(true)
      expect(found.every((start, index) => index === 0 || start > (found[index - 1] as Date))).toBe(true)
      const next = nextStart(interval, zone, until)
      expect(next > until).toBe(true)
      expect(found.at(-1)).toEqual(startsBetween(interval, zone, until, next, 1)[0] as Date)
    }
  }
})

test('knows the names of zones, and takes nothing else for one', () => {
  const names = ['UTC', 'Europe/London', 'europe/london', 'America/Argentina/Ushuaia', 'Etc/GMT+5']
  const others = ['', 'Mars/Base', '+05:30', 'Europe', 'Europe/London/', '../etc/passwd', 'UTC\0']
  expect(names.map(parseZone)).toEqual(names)
  expect(others.map(parseZone)).toEqual(others.map(() => undefined))
})
