import { ExactNumber } from '../client/exact_json.ts'

/** A value of somebody else's making, folded out level by level. */
export function Tree({ name, value, isRoot }: { name: string; value: unknown; isRoot?: boolean }) {
  if (isLeaf(value)) {
    return (
      <span class="leaf">
        <bdi class="text muted">{name}</bdi> <bdi class="text">{leafText(value)}</bdi>
      </span>
    )
  }
  const entries = Object.entries(value as object)
  if (entries.length === 0) return <span class="muted">none</span>
  return (
    <details class="tree">
      <summary>
        {isRoot || <bdi class="text">{name} </bdi>}
        <bdi class="preview muted">{previewOf(entries)}</bdi>
      </summary>
      <ul>
        {entries.map(([key, inner]) => (
          <li key={key}>
            <Tree name={key} value={inner} />
          </li>
        ))}
      </ul>
    </details>
  )
}

const [previewLength, previewTextLength] = [120, 24]

/** The first of the entries on one line, to know it by. */
const previewOf = (entries: [string, unknown][]): string =>
  entries
    .filter(([, value]) => value !== null)
    .slice(0, 6)
    .map(([key, value]) => `${key} ${isLeaf(value) ? shortened(leafText(value)) : '…'}`)
    .join(', ')
    .slice(0, previewLength)

const isLeaf = (value: unknown): boolean => typeof value !== 'object' || value === null || value instanceof ExactNumber

const shortened = (text: string): string =>
  text.length > previewTextLength ? `${text.slice(0, previewTextLength)}…` : text

/** A text as it is, anything else as JSON. */
function leafText(value: unknown): string {
  if (value instanceof ExactNumber) return value.text
  return typeof value === 'string' ? value : (JSON.stringify(value) ?? '')
}
