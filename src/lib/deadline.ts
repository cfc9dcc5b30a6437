export class DeadlineError extends Error {
  constructor() {
    super('no answer in time')
  }
}

type Waiting = { endsAt: number; giveUp(): void }

/** How late a deadline may be noticed. */
const precisionMs = 50
const waiting = new Set<Waiting>()
let timer: ReturnType<typeof setInterval> | undefined

/** One timer for all: a timer for each would be made and cleared several times a request. */
function watch(): void {
  const now = performance.now()
  for (const one of waiting) if (now >= one.endsAt) one.giveUp()
  if (waiting.size > 0) return
  clearInterval(timer)
  timer = undefined
}

/** The result of the work, or a DeadlineError once its time is up. The work itself is not stopped. */
export const within = <T>(ms: number, work: PromiseLike<T>): Promise<T> => before(performance.now() + ms, work)

/** The same by the clock of `performance.now()`. */
export function before<T>(endsAt: number, work: PromiseLike<T>): Promise<T> {
  return new Promise((resolve, reject) => {
    const one: Waiting = {
      endsAt,
      giveUp() {
        waiting.delete(one)
        reject(new DeadlineError())
      },
    }
    waiting.add(one)
    timer ??= setInterval(watch, precisionMs)
    work.then(
      (result) => {
        waiting.delete(one)
        resolve(result)
      },
      (error) => {
        waiting.delete(one)
        reject(error)
      },
    )
  })
}
