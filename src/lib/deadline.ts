export class DeadlineError extends Error {
  constructor() {
    super('no answer in time')
  }
}

/** Work that has to be done in time. */
export type Timed = {
  /** By the clock of `performance.now()`; may still change. */
  endsAt: number
  isOver: boolean
  /** Called once, if it is not over when its time is up. */
  giveUp(): void
}

/** How late a deadline may be noticed. */
const precisionMs = 50
let watched: Timed[] = []
let timer: ReturnType<typeof setInterval> | undefined

/** One timer for all: a timer for each would be made and cleared with every request. */
function look(): void {
  const now = performance.now()
  watched = watched.filter((one) => !one.isOver)
  for (const one of watched) if (now >= one.endsAt && finish(one)) one.giveUp()
  if (watched.length > 0) return
  clearInterval(timer)
  timer = undefined
}

export function watch(one: Timed): void {
  watched.push(one)
  timer ??= setInterval(look, precisionMs)
}

/** Ends the watch; false when it had ended before. */
export function finish(one: Timed): boolean {
  const isFirst = !one.isOver
  one.isOver = true
  return isFirst
}

/** The result of the work, or a DeadlineError once its time is up. The work itself is not stopped. */
export const within = <T>(ms: number, work: PromiseLike<T>): Promise<T> =>
  new Promise((resolve, reject) => {
    const one = { endsAt: performance.now() + ms, isOver: false, giveUp: () => reject(new DeadlineError()) }
    watch(one)
    work.then(
      (result) => finish(one) && resolve(result),
      (error) => finish(one) && reject(error),
    )
  })
