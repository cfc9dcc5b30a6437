import { useEffect, useState } from 'preact/hooks'
import { showHidden } from '../../lib/hidden.ts'
import { Button } from './button.tsx'
import { countOf } from './format.ts'

type Part = { value: string; added?: boolean; removed?: boolean }
type Line = { parts: Part[]; isChanged: boolean }

/** Past this many changed words the texts are shown one after the other. */
const maxEditLength = 2_000
/** How many lines around a changed one are shown, and how many lines at first. */
const [context, mostLines] = [3, 200]

/** The lines that a change touched, with the words that it took out and put in; all of the text on demand. */
export function WordDiff({ before, after }: { before: string; after: string }) {
  const [parts, setParts] = useState<Part[]>([])
  const [isWhole, setWhole] = useState(false)
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
  const lines = toLines(parts)
  const hunks = isWhole ? [{ start: 0, end: lines.length }] : findHunks(lines)
  const shown = hunks.reduce((sum, { start, end }) => sum + end - start, 0)
  return (
    <>
      <div class="diff">
        {hunks.map(({ start, end }) => (
          <pre key={start}>
            {!isWhole && <span class="diff-place">Line {start + 1}</span>}
            {lines.slice(start, end).map((line, index) => (
              <LineOf key={start + index} line={line} />
            ))}
          </pre>
        ))}
      </div>
      {(isWhole || shown < lines.length) && (
        <Button
          look="small"
          does={isWhole ? 'Show only what changed' : `Show all ${countOf(lines.length, 'line')}`}
          onClick={() => setWhole(!isWhole)}
        />
      )}
    </>
  )
}

const LineOf = ({ line: { parts } }: { line: Line }) => (
  <>
    {parts.map(({ value, added, removed }, index) => {
      const Tag = added ? 'ins' : removed ? 'del' : 'span'
      return <Tag key={`${index} ${Tag}`}>{showHidden(value)}</Tag>
    })}
    {'\n'}
  </>
)

function toLines(parts: Part[]): Line[] {
  const lines: Line[] = []
  let line: Line | undefined
  for (const { value, ...kind } of parts) {
    const isChange = Boolean(kind.added || kind.removed)
    value.split('\n').forEach((text, index) => {
      if (!line || index > 0) {
        line = { parts: [], isChanged: false }
        lines.push(line)
      }
      if (text !== '') line.parts.push({ ...kind, value: text })
      // A line break that was put in or taken out is a change, too.
      line.isChanged ||= isChange && (text !== '' || index > 0)
    })
  }
  // A text that ends with a line break has no line after it.
  return lines.at(-1)?.parts.length === 0 ? lines.slice(0, -1) : lines
}

type Hunk = { start: number; end: number }

function findHunks(lines: Line[]): Hunk[] {
  const hunks: Hunk[] = []
  let left = mostLines
  lines.forEach(({ isChanged }, index) => {
    const last = hunks.at(-1)
    if (!isChanged || left <= 0) return
    const [start, end] = [Math.max(0, index - context), Math.min(lines.length, index + context + 1)]
    if (last && start <= last.end) last.end = end
    else hunks.push({ start, end })
    left = mostLines - hunks.reduce((sum, hunk) => sum + hunk.end - hunk.start, 0)
  })
  return hunks
}
