import { useState } from 'preact/hooks'
import { type Failure, RequestFailed } from './failure.ts'
import { readFailure } from './query.ts'

/** A change that is being sent, and why it was refused. */
export type Sending = {
  isSending: boolean
  failure: Failure | undefined
  send(work: () => Promise<void>): Promise<void>
}

export function useSending(): Sending {
  const [isSending, setSending] = useState(false)
  const [failure, setFailure] = useState<Failure>()
  const send = async (work: () => Promise<void>) => {
    setSending(true)
    setFailure(undefined)
    try {
      await work()
    } catch (error) {
      if (!(error instanceof RequestFailed)) throw error
      setFailure(readFailure(error))
    } finally {
      setSending(false)
    }
  }
  return { isSending, failure, send }
}
