export class DeadlineError extends Error {
  constructor() {
    super('no answer in time')
  }
}

/** When work has to be done, by the clock of `performance.now()`, which may still change; and what it is then late with. */
export type Deadline = { endsAt: number; late(): Error }

type Waiting = { deadline: Deadline; giveUp(error: Error): void }

/** How late a deadline may be noticed. */
const precisionMs = 50
const waiting = new Set<Waiting>()
let timer: ReturnType<typeof setInterval> | undefined

/** One timer for all: a timer for each would be made and cleared with every request. */
function watch(): void {
  const now = performance.now()
  for (const one of waiting) {
    if (now < one.deadline.endsAt) continue
    waiting.delete(one)
    one.giveUp(one.deadline.late())
  }
  if (waiting.size > 0) return
  clearInterval(timer)
  timer = undefined
}

/** The result of the work, or a DeadlineError once its time is up. The work itself is not stopped. */
export const within = <T>(ms: number, work: PromiseLike<T>): Promise<T> =>
  before({ endsAt: performance.now() + ms, late: () => new DeadlineError() }, work)

export function before<T>(deadline: Deadline, work: PromiseLike<T>): Promise<T> {
  return new Promise((resolve, giveUp) => {
    const one: Waiting = { deadline, giveUp }
    waiting.add(one)
    timer ??= setInterval(watch, precisionMs)
    work.then(
      (result) => {
        waiting.delete(one)
        resolve(result)
      },
      (error) => {
        waiting.delete(one)
        giveUp(error)
      },
    )
  })
}
