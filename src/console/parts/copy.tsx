import { useState } from 'preact/hooks'
import { Code } from './text.tsx'

/** Copies a text. Where the browser does not let a page do so, which is so without HTTPS, the text stays to be selected. */
export function CopyButton({ text, of }: { text: string; of: string }) {
  const [state, setState] = useState<'ready' | 'copied' | 'failed'>('ready')
  const copy = async () => {
    try {
      await navigator.clipboard.writeText(text)
      setState('copied')
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
        {state === 'failed' && 'The browser does not allow it: select the text instead.'}
      </span>
    </>
  )
}

/** What is shown this once. */
export const Secret = ({ text, of }: { text: string; of: string }) => (
  <p class="row secret">
    <Code>{text}</Code>
    <CopyButton text={text} of={of} />
  </p>
)
