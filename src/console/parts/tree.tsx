/** A value of somebody else's making, folded out level by level. */
export function Tree({ name, value }: { name: string; value: unknown }) {
  if (typeof value !== 'object' || value === null) {
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

/** A text as it is, so that it can be told from a number only where that matters. */
const leafText = (value: unknown): string => (typeof value === 'string' ? value : (JSON.stringify(value) ?? ''))
