import { ExactNumber } from '../client/exact_json.ts'

/** A value of somebody else's making, folded out level by level. */
export function Tree({ name, value }: { name: string; value: unknown }) {
  if (typeof value !== 'object' || value === null || value instanceof ExactNumber) {
    return (
      <span class="leaf">
        <bdi class="text muted">{name}</bdi> <bdi class="text">{leafText(value)}</bdi>
      </span>
    )
  }
  const entries = Object.entries(value)
  if (entries.length === 0) return <span class="muted">none</span>
  return (
    <details class="tree">
      <summary>
        <bdi class="text">{name}</bdi>{' '}
        <span class="muted">{Array.isArray(value) ? `[${entries.length}]` : `{${entries.length}}`}</span>
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

/** A text as it is, anything else as JSON. */
function leafText(value: unknown): string {
  if (value instanceof ExactNumber) return value.text
  return typeof value === 'string' ? value : (JSON.stringify(value) ?? '')
}
