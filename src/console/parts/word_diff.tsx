import { useEffect, useState } from 'preact/hooks'
import { showHidden } from '../../lib/hidden.ts'

type Part = { value: string; added?: boolean; removed?: boolean }

/** Past this many changed words the texts are shown one after the other. */
const maxEditLength = 2_000

/** A text with the words that a change took out and put in. */
export function WordDiff({ before, after }: { before: string; after: string }) {
  const [parts, setParts] = useState<Part[]>([])
  useEffect(() => {
    let isGone = false
    const whole = [
      { value: before, removed: true },
      { value: after, added: true },
    ]
    const show = (parts: Part[] = whole) => isGone || setParts(parts)
    import('diff').then(
      ({ diffWordsWithSpace }) => show(diffWordsWithSpace(before, after, { maxEditLength })),
      // The file has another name after an upgrade of the service.
      () => show(),
    )
    return () => {
      isGone = true
    }
  }, [before, after])
  return (
    <pre class="diff">
      {parts.map(({ value, added, removed }, index) => {
        const Tag = added ? 'ins' : removed ? 'del' : 'span'
        return <Tag key={`${index} ${Tag}`}>{showHidden(value)}</Tag>
      })}
    </pre>
  )
}
