import { afterEach, expect, mock, spyOn, test } from 'bun:test'
import { createAvailabilityTracker } from '../../src/db/errors.ts'

afterEach(() => mock.restore())

const diskFull = Object.assign(new Error('could not extend file'), { name: 'PostgresError', code: '53100' })

test('a database that answers reads and refuses writes is down once, and up after three seconds of answers', () => {
  const changes: boolean[] = []
  const clock = spyOn(performance, 'now').mockReturnValue(0)
  const tracker = createAvailabilityTracker((isUp) => changes.push(isUp))
  tracker.answered()
  let now = 0
  const pass = (ms: number) => {
    now += ms
    clock.mockReturnValue(now)
  }
  for (let second = 0; second < 60; second++) {
    tracker.failed(diskFull, now)
    pass(1_000)
    tracker.answered()
  }
  expect(changes).toEqual([false])
  pass(1_999)
  tracker.answered()
  expect(changes).toEqual([false])
  pass(1)
  tracker.answered()
  expect(changes).toEqual([false, true])
})
