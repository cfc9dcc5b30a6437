export class DeadlineError extends Error {
  constructor() {
    super('no answer in time')
  }
}

/** Work that has a deadline. */
export type Timed = {
  /** The deadline, by the clock of `performance.now()`. It may still change. */
  endsAt: number
  isOver: boolean
  /** Called once, if the work is not over at its deadline. */
  giveUp(): void
}

export type Deadline = Pick<Timed, 'endsAt'>

/** How late a missed deadline may be noticed. */
const precisionMs = 50
let tracked: Timed[] = []
let timer: ReturnType<typeof setInterval> | undefined

/** One timer serves all: a timer for each would be made and cleared with every request. */
function checkDeadlines(): void {
  const now = performance.now()
  tracked = tracked.filter((work) => !work.isOver)
  for (const work of tracked) if (now >= work.endsAt && settle(work)) work.giveUp()
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
  const isFirst = !work.isOver
  work.isOver = true
  return isFirst
}

/** The result of the promise, or a DeadlineError once the time is up. The work behind it is not stopped. */
export const within = <T>(ms: number, promise: PromiseLike<T>): Promise<T> =>
  new Promise((resolve, reject) => {
    const work = { endsAt: performance.now() + ms, isOver: false, giveUp: () => reject(new DeadlineError()) }
    track(work)
    promise.then(
      (result) => settle(work) && resolve(result),
      (error) => settle(work) && reject(error),
    )
  })
