import { useState } from 'preact/hooks'
import { type Failure, readFailure } from './failure.ts'

/** A change that is being sent, and why it failed. */
export function useSending() {
  const [state, setState] = useState<{ isSending: boolean; failure?: Failure | undefined }>({ isSending: false })
  const send = async (work: () => Promise<void>) => {
    setState({ isSending: true })
    let failure: Failure | undefined
    try {
      await work()
    } catch (error) {
      failure = readFailure(error)
    } finally {
      setState({ isSending: false, failure })
    }
  }
  return { ...state, send }
}
