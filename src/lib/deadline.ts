export class DeadlineError extends Error {
  constructor() {
    super('no answer in time')
  }
}

/** The result of the work, or a DeadlineError once its time is up. The work itself is not stopped. */
export async function within<T>(ms: number, work: PromiseLike<T>): Promise<T> {
  let timer: ReturnType<typeof setTimeout> | undefined
  const deadline = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new DeadlineError()), ms)
  })
  try {
    return await Promise.race([work, deadline])
  } finally {
    clearTimeout(timer)
  }
}
