import { Fragment } from 'preact'
import { Text } from './text.tsx'

/** A value of somebody else's making, folded out level by level. */
export function Tree({ name, value, isRoot }: { name: string; value: unknown; isRoot?: boolean }) {
  if (isLeaf(value)) {
    if (isRoot) return <span class="muted">none</span>
    return (
      <span class="leaf">
        <Text>{name}</Text> <Text>{leafText(value)}</Text>
      </span>
    )
  }
  const entries = Object.entries(value as object)
  return (
    <details class="tree">
      <summary>
        {isRoot || <Text>{`${name} `}</Text>}
        <span class="preview muted">
          {previewOf(entries).map((text, index) => (
            <Fragment key={`${index} ${text}`}>
              {index > 0 && ', '}
              <Text>{text}</Text>
            </Fragment>
          ))}
        </span>
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

const previewTextLength = 24

/** The first of the entries, to know it by. Each has its own direction: one may not turn the others around. */
const previewOf = (entries: [string, unknown][]): string[] =>
  entries
    .filter(([, value]) => value !== null)
    .slice(0, 6)
    .map(([key, value]) => `${shortened(key)} ${isLeaf(value) ? shortened(leafText(value)) : '…'}`)

/** Whether there is nothing to fold out. */
const isLeaf = (value: unknown): boolean =>
  typeof value !== 'object' || value === null || JSON.isRawJSON?.(value) || Object.keys(value).length === 0

const shortened = (text: string): string =>
  text.length > previewTextLength ? `${text.slice(0, previewTextLength)}…` : text

/** A text as it is, anything else as JSON. */
const leafText = (value: unknown): string => (typeof value === 'string' ? value : (JSON.stringify(value) ?? ''))
