export class DeadlineError extends Error {
  constructor() {
    super('no answer in time')
  }
}

/** Work that has a deadline. */
export type Timed = {
  /** The deadline, by the clock of `performance.now()`. It may still change. */
  deadline: number
  settled: boolean
  /** Called once, if the work is not over at its deadline. */
  onTimeout(): void
}

export type Deadline = Pick<Timed, 'deadline'>

/** How late a missed deadline may be noticed. */
const precisionMs = 50
let tracked: Timed[] = []
let timer: ReturnType<typeof setInterval> | undefined

/** One timer serves all: a timer for each would be made and cleared with every request. */
function checkDeadlines(): void {
  const now = performance.now()
  tracked = tracked.filter((work) => !work.settled)
  for (const work of tracked) if (now >= work.deadline && settle(work)) work.onTimeout()
  if (tracked.length > 0) return
  clearInterval(timer)
  timer = undefined
}

/** Gives the work up at its deadline, unless it is settled before. */
export function track(work: Timed): void {
  tracked.push(work)
  timer ??= setInterval(checkDeadlines, precisionMs)
}

/** Marks the work as over; false when it already was. */
export function settle(work: Timed): boolean {
  const isFirst = !work.settled
  work.settled = true
  return isFirst
}

/** The result of the promise, or a DeadlineError once the time is up. The work behind it is not stopped. */
export const within = <T>(ms: number, promise: PromiseLike<T>): Promise<T> =>
  new Promise((resolve, reject) => {
    const work = { deadline: performance.now() + ms, settled: false, onTimeout: () => reject(new DeadlineError()) }
    track(work)
    promise.then(
      (result) => settle(work) && resolve(result),
      (error) => settle(work) && reject(error),
    )
  })
