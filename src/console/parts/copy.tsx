import { useState } from 'preact/hooks'
import { Code, Command } from './text.tsx'

type CopyProps = { text: string; of: string; onCopied?: () => void }

/** Copies a text. Without HTTPS browsers do not allow it, and the user selects the text instead. */
export function CopyButton({ text, of, onCopied }: CopyProps) {
  const [state, setState] = useState<'ready' | 'copied' | 'failed'>('ready')
  const copy = async () => {
    try {
      await navigator.clipboard.writeText(text)
      setState('copied')
      onCopied?.()
    } catch {
      setState('failed')
    }
  }
  return (
    <>
      <button type="button" class="small" onClick={copy} aria-label={`Copy ${of}`}>
        {state === 'copied' ? 'Copied' : 'Copy'}
      </button>
      <span role="status" class={state === 'failed' ? 'detail' : 'visually-hidden'}>
        {state === 'copied' && `Copied ${of}`}
        {state === 'failed' && 'The browser does not allow copying. Select the text instead.'}
      </span>
    </>
  )
}

/** What is to be pasted at a terminal or into a program. */
export const Copied = (copied: CopyProps) => (
  <div class="copied">
    <Command>{copied.text}</Command>
    <CopyButton {...copied} />
  </div>
)

/** A secret that is shown only once. */
export const Secret = (copied: CopyProps) => (
  <p class="row secret">
    <Code>{copied.text}</Code>
    <CopyButton {...copied} />
  </p>
)
