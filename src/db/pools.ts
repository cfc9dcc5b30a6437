import { openPool, type SessionOptions, type Target } from './driver.ts'

type Pool = ReturnType<typeof openPool>

/** The connections for single statements, and those for transactions. */
export type PoolPair = { statements: Pool; transactions: Pool }

export type Subscription = [channel: string, onNotice: (payload: string) => void, onGap: () => void]

/** How long the pending statements of a pool may take when it is closed. */
const endSeconds = 5

/**
 * Opens both pools. Single statements are not pipelined, so that a slow one never delays others behind it. Within a
 * transaction the driver has to pipeline.
 */
export function openPools(target: Target, session: SessionOptions, sizes: Record<keyof PoolPair, number>) {
  const open = (): PoolPair => ({
    statements: openPool(target, session, sizes.statements, 0),
    transactions: openPool(target, session, sizes.transactions, 1),
  })
  const subscriptions: Subscription[] = []
  let current = open()

  // The driver itself subscribes again when it loses that connection.
  const listen = (subscription: Subscription) => current.statements.listen(...subscription).catch(() => {})

  const end = async ({ statements, transactions }: PoolPair) => {
    await Promise.all([statements.end({ timeout: endSeconds }), transactions.end({ timeout: endSeconds })])
  }

  return {
    get current() {
      return current
    },
    /**
     * Replaces these connections with new ones, unless that has been done already. A connection whose peer vanished
     * without closing it would stay in use until the kernel notices, which takes a quarter of an hour or more. The driver
     * cannot close a single connection, so all are replaced.
     */
    replace(broken: PoolPair): void {
      if (broken !== current || !('url' in target)) return
      current = open()
      for (const subscription of subscriptions) listen(subscription)
      end(broken).catch(() => {})
    },
    /** Subscribes to a channel, and again whenever the connection is lost or replaced. */
    subscribe(...subscription: Subscription): void {
      subscriptions.push(subscription)
      listen(subscription)
    },
    end: () => end(current),
  }
}
