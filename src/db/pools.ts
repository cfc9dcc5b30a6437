import { openPool, type SessionOptions, type Target } from './driver.ts'

type Pool = ReturnType<typeof openPool>

/** The connections for single statements, and those for transactions. */
export type PoolPair = { statements: Pool; transactions: Pool }

export type Subscription = [channel: string, onNotice: (payload: string) => void, onGap: () => void]

/** How long the pending statements of a pool may take when it is closed. */
const endSeconds = 5

/** Single statements are not pipelined, so that a slow one delays no others. Within a transaction the driver has to. */
export function openPools(target: Target, session: SessionOptions, sizes: Record<keyof PoolPair, number>) {
  const open = (): PoolPair => ({
    statements: openPool(target, session, sizes.statements, 0, notifyLost),
    transactions: openPool(target, session, sizes.transactions, 1, notifyLost),
  })
  const subscriptions: Subscription[] = []
  const lossListeners: (() => void)[] = []
  const notifyLost = () => {
    for (const onLost of lossListeners) onLost()
  }
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
    /** Replaces all, as the driver cannot close one. One whose peer vanished could stay in use for 15 minutes. */
    replace(broken: PoolPair): void {
      if (broken !== current || !('url' in target)) return
      notifyLost()
      current = open()
      for (const subscription of subscriptions) listen(subscription)
      end(broken).catch(() => {})
    },
    /** Subscribes to a channel, and again whenever the connection is lost or replaced. */
    subscribe(...subscription: Subscription): void {
      subscriptions.push(subscription)
      listen(subscription)
    },
    onLost: (listener: () => void) => void lossListeners.push(listener),
    end: () => end(current),
  }
}
