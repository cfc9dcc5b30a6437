import { openPool, type Session, type Target } from './driver.ts'

type Pool = ReturnType<typeof openPool>

/** The connections for single statements, and those for transactions. */
export type PoolPair = { statements: Pool; transactions: Pool }

export type Listener = [channel: string, onNotice: (payload: string) => void, onGap: () => void]

export type Pools = {
  readonly current: PoolPair
  /** Opens new connections in the place of these, unless that was done already. */
  replace(useless: PoolPair): void
  /** Subscribes to a channel, and again whenever the connection is lost or replaced. */
  subscribe(...listener: Listener): void
  end(): Promise<void>
}

/** How long statements under way may take when their pool is closed. */
const endSeconds = 5

/**
 * Opens both pools. No statement is sent to a connection that still has one: a slow one never holds up those behind it.
 * Within a transaction the driver must be able to.
 */
export function openPools(target: Target, session: Session, sizes: Record<keyof PoolPair, number>): Pools {
  const open = (): PoolPair => ({
    statements: openPool(target, session, sizes.statements, 0),
    transactions: openPool(target, session, sizes.transactions, 1),
  })
  const listeners: Listener[] = []
  let current = open()

  // The driver itself subscribes again when it loses that connection.
  const listen = (listener: Listener) => current.statements.listen(...listener).catch(() => {})

  const end = async ({ statements, transactions }: PoolPair) => {
    await Promise.all([statements.end({ timeout: endSeconds }), transactions.end({ timeout: endSeconds })])
  }

  return {
    get current() {
      return current
    },
    // A connection whose other end has gone without a word would be used for ever, or for the quarter of an hour that
    // the kernel takes to notice. The driver cannot close a single one, so all are replaced.
    replace(useless) {
      if (useless !== current || !('url' in target)) return
      current = open()
      for (const listener of listeners) listen(listener)
      end(useless).catch(() => {})
    },
    subscribe(...listener) {
      listeners.push(listener)
      listen(listener)
    },
    end: () => end(current),
  }
}
