import { useEffect, useState } from 'preact/hooks'

type Part = { value: string; added?: boolean; removed?: boolean }

/** Past this many changed words the texts are shown one after the other. */
const maxEditLength = 2_000

/** A text with the words that a change took out and put in. */
export function WordDiff({ before, after }: { before: string; after: string }) {
  const [parts, setParts] = useState<Part[]>([])
  useEffect(() => {
    let isGone = false
    import('diff').then(({ diffWordsWithSpace }) => {
      const whole = [
        { value: before, removed: true },
        { value: after, added: true },
      ]
      if (!isGone) setParts(diffWordsWithSpace(before, after, { maxEditLength }) ?? whole)
    })
    return () => {
      isGone = true
    }
  }, [before, after])
  return (
    <pre class="diff">
      {parts.map(({ value, added, removed }, index) => {
        const Tag = added ? 'ins' : removed ? 'del' : 'span'
        return <Tag key={`${index} ${Tag}`}>{value}</Tag>
      })}
    </pre>
  )
}
