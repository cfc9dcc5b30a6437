// What the driver's errors mean, told without loading the driver.

type PostgresError = Error & { code: string }

/** Whether it is what Postgres answered to a statement. */
export const isAnswer = (error: unknown): error is PostgresError =>
  error instanceof Error && error.name === 'PostgresError'

/** Why a statement wrote nothing: its data, or rows that others held for too long. */
export function faultOf(error: unknown): 'item' | 'busy' | undefined {
  if (!isAnswer(error)) return undefined
  if (/^2[23]/.test(error.code)) return 'item'
  return ['55P03', '40P01', '40001'].includes(error.code) ? 'busy' : undefined
}

/** Whether the connection was lost that a statement was sent on. The statement may have been carried out. */
export const isConnectionLost = (error: unknown): boolean =>
  error instanceof Error &&
  ['CONNECTION_CLOSED', 'ECONNRESET', 'EPIPE'].includes((error as { code?: string }).code ?? '')
