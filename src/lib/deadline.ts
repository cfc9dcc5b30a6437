export class DeadlineError extends Error {
  constructor() {
    super('no answer in time')
  }
}

export type Timed = {
  /** On the clock of `performance.now()`. It may still change. */
  deadline: number
  settled: boolean
  onTimeout(): void
}

export type Deadline = Pick<Timed, 'deadline'>

const precisionMs = 50
let tracked: Timed[] = []
let timer: ReturnType<typeof setInterval> | undefined

/** One timer serves all: a timer per request would cost time for every request. */
function checkDeadlines(): void {
  const now = performance.now()
  tracked = tracked.filter((work) => !work.settled)
  for (const work of tracked) if (now >= work.deadline && settle(work)) work.onTimeout()
  if (tracked.length > 0) return
  clearInterval(timer)
  timer = undefined
}

/** Calls `onTimeout` at the deadline, unless the work is settled before. */
export function watchDeadline(work: Timed): void {
  tracked.push(work)
  timer ??= setInterval(checkDeadlines, precisionMs)
}

/** Settles the work. Returns false when it already was. */
export function settle(work: Timed): boolean {
  const isFirst = !work.settled
  work.settled = true
  return isFirst
}

/** Resolves with the promise, or rejects with a DeadlineError after `ms`. The work itself is not stopped. */
export const within = <T>(ms: number, promise: PromiseLike<T>): Promise<T> =>
  new Promise((resolve, reject) => {
    const work = { deadline: performance.now() + ms, settled: false, onTimeout: () => reject(new DeadlineError()) }
    watchDeadline(work)
    promise.then(
      (result) => settle(work) && resolve(result),
      (error) => settle(work) && reject(error),
    )
  })
