import { classifyError } from './errors.ts'

const retryMs = 20

/** Repeats a transaction with a deadline while another one, such as an import, holds its locks. */
export async function untilUnlocked<T>(transaction: () => Promise<T>): Promise<T> {
  for (;;) {
    try {
      return await transaction()
    } catch (error) {
      if (classifyError(error) !== 'lock_timeout') throw error
    }
    await new Promise((resolve) => setTimeout(resolve, retryMs))
  }
}
