import { expect, test } from 'bun:test'
import { nextStart, startsBetween } from '../../src/stats/intervals.ts'
import { type Interval, parseZone } from '../../src/stats/schema.ts'

const starts = (interval: Interval, zone: string, since: string, until: string) =>
  startsBetween(interval, zone, new Date(since), new Date(until), 1_001).map((start) =>
    start.toISOString().replace(':00.000Z', 'Z'),
  )

test.each([
  [
    'a day of 23 hours',
    'day Europe/London 2026-03-28T12:00Z 2026-03-30T12:00Z',
    '2026-03-28T00:00Z 2026-03-29T00:00Z 2026-03-29T23:00Z',
  ],
  [
    'an hour that clocks show twice',
    'hour Europe/London 2026-10-24T23:30Z 2026-10-25T02:30Z',
    '2026-10-24T23:00Z 2026-10-25T00:00Z 2026-10-25T01:00Z 2026-10-25T02:00Z',
  ],
  [
    'clocks that are set back by half an hour',
    'hour Australia/Lord_Howe 2026-04-04T14:00Z 2026-04-04T17:00Z',
    '2026-04-04T14:00Z 2026-04-04T15:00Z 2026-04-04T15:30Z 2026-04-04T16:30Z',
  ],
  [
    'clocks that are set forward by half an hour',
    'hour Australia/Lord_Howe 2026-10-03T14:30Z 2026-10-03T16:30Z',
    '2026-10-03T14:30Z 2026-10-03T15:30Z 2026-10-03T16:00Z',
  ],
  [
    'clocks that were set back a minute after midnight',
    'day America/St_Johns 2010-11-07T03:00Z 2010-11-08T12:00Z',
    '2010-11-07T02:30Z 2010-11-08T03:30Z',
  ],
  [
    'the same by hours',
    'hour America/St_Johns 2010-11-07T01:30Z 2010-11-07T04:00Z',
    '2010-11-07T01:30Z 2010-11-07T02:30Z 2010-11-07T02:31Z 2010-11-07T03:30Z',
  ],
  [
    'a day that a zone has skipped',
    'day Pacific/Apia 2011-12-29T10:00Z 2011-12-31T11:00Z',
    '2011-12-29T10:00Z 2011-12-30T10:00Z 2011-12-31T10:00Z',
  ],
  [
    'a day whose first hour is skipped',
    'day America/Sao_Paulo 2018-11-03T12:00Z 2018-11-05T12:00Z',
    '2018-11-03T03:00Z 2018-11-04T03:00Z 2018-11-05T02:00Z',
  ],
  [
    'a midnight that comes twice',
    'day America/Havana 2026-10-31T12:00Z 2026-11-02T12:00Z',
    '2026-10-31T04:00Z 2026-11-01T04:00Z 2026-11-02T05:00Z',
  ],
  [
    'weeks, which begin on Monday',
    'week Europe/London 2026-03-22T23:59Z 2026-04-06T00:00Z',
    '2026-03-16T00:00Z 2026-03-23T00:00Z 2026-03-29T23:00Z 2026-04-05T23:00Z',
  ],
  [
    'months',
    'month Europe/London 2026-02-28T23:59Z 2026-04-30T23:00Z',
    '2026-02-01T00:00Z 2026-03-01T00:00Z 2026-03-31T23:00Z',
  ],
  [
    'a zone whose offset had seconds',
    'day Africa/Monrovia 1972-01-06T12:00Z 1972-01-08T12:00Z',
    '1972-01-06T00:44:30.000Z 1972-01-07T00:44:30.000Z 1972-01-08T00:00Z',
  ],
])('intervals begin right in %s', (_, query, expected) => {
  const [interval, zone, since, until] = query.split(' ') as [Interval, string, string, string]
  expect(starts(interval, zone, since, until)).toEqual(expected.split(' '))
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
