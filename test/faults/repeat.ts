// Clients that do something again and again while a fault comes and goes.
import type { Replica } from './post.ts'

export type Repetition = {
  /** Begins nothing further, and waits for what is in flight. */
  stop(): Promise<void>
}

const RETRY_MS = 50
/** What did not succeed in this time never will. */
const PERSIST_MS = 120_000

export function repeat(work: (turn: number) => Promise<unknown>, pauseMs: number, firstTurn = 0): Repetition {
  let stopping = false
  const working = (async () => {
    for (let turn = firstTurn; !stopping; turn++) {
      await work(turn)
      await Bun.sleep(pauseMs)
    }
  })()
  return {
    async stop() {
      stopping = true
      await working
    },
  }
}

export const together = (repetitions: Repetition[]): Repetition => ({
  async stop() {
    await Promise.all(repetitions.map((one) => one.stop()))
  },
})

/**
 * Sends a request by turns at each replica until `send` returns `done`; waits a little after `failed`. Returns whether it
 * was ever done.
 */
export async function persist(
  replicas: Replica[],
  turn: number,
  send: (replica: Replica) => Promise<'done' | 'failed' | 'again'>,
): Promise<boolean> {
  const giveUpAt = performance.now() + PERSIST_MS
  for (let attempt = turn; performance.now() < giveUpAt; attempt++) {
    const result = await send(replicas[attempt % replicas.length] as Replica)
    if (result === 'done') return true
    if (result === 'failed') await Bun.sleep(RETRY_MS)
  }
  return false
}
