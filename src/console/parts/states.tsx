import type { ComponentChildren } from 'preact'
import type { Failure } from '../client/failure.ts'
import type { Query } from '../client/query.ts'
import { CopyButton } from './copy.tsx'
import { formatDistance } from './format.ts'

type AwaitProps<Data> = { query: Query<Data>; children(data: Data): ComponentChildren }

/** Shows what was asked for, or why it is not there. A short wait is shown as nothing at all. */
export function Await<Data>({ query: { data, failure, isSlow, reload }, children }: AwaitProps<Data>) {
  // What was read before is shown on while the service is away, but not to a key that may no longer read it.
  const isAway = failure?.kind === 'offline' || failure?.kind === 'failed'
  return (
    <>
      {failure && <FailureNote failure={failure} retry={reload} />}
      {data !== undefined && (!failure || isAway) && children(data)}
      {data === undefined && !failure && (isSlow ? <Skeleton /> : <div class="pending" />)}
    </>
  )
}

const Skeleton = () => (
  <div class="skeleton" role="status">
    <span class="visually-hidden">Loading</span>
    {[72, 56, 64, 48].map((width) => (
      <span key={width} class={`bone bone-${width}`} />
    ))}
  </div>
)

/** A place with nothing in it yet, and what fills it. */
export const Empty = ({ title, children }: { title: string; children?: ComponentChildren }) => (
  <div class="note">
    <p class="note-title">{title}</p>
    {children}
  </div>
)

export function FailureNote({ failure, retry }: { failure: Failure; retry?: () => void }) {
  const { title, says } = describe(failure)
  return (
    <div class="note note-failure" role="alert">
      <p class="note-title">{title}</p>
      <p>{says}</p>
      {failure.kind === 'invalid' && failure.details.length > 0 && (
        <ul>
          {failure.details.map(({ path, message }) => (
            <li key={path}>
              {path && <strong>{path.replace(/^\//, '')}</strong>} {message}
            </li>
          ))}
        </ul>
      )}
      {failure.kind === 'failed' && failure.requestId && (
        <p>
          Request <code class="text">{failure.requestId}</code>{' '}
          <CopyButton text={failure.requestId} of="the request id" />
        </p>
      )}
      {retry && ['offline', 'failed', 'limited'].includes(failure.kind) && (
        <button type="button" onClick={retry}>
          Try again
        </button>
      )}
    </div>
  )
}

function describe(failure: Failure): { title: string; says: ComponentChildren } {
  switch (failure.kind) {
    case 'offline':
      return { title: 'The service cannot be reached', says: 'Check the connection, then try again.' }
    case 'signed out':
      return { title: 'This key is not accepted', says: 'It is unknown, revoked or expired. Sign in with another one.' }
    case 'forbidden':
      return {
        title: 'This key may not see or do this',
        says: (
          <>
            It lacks the scope <code>{failure.scope}</code>. Sign in with a key that has it.
          </>
        ),
      }
    case 'missing':
      return { title: 'There is nothing here', says: 'It does not exist, or belongs to another organisation.' }
    case 'invalid':
      return { title: 'That cannot be right', says: failure.message }
    case 'limited':
      return {
        title: 'The limit is reached',
        says: failure.againAt ? `Try again ${formatDistance(failure.againAt)}.` : 'Try again in a moment.',
      }
    case 'failed':
      return {
        title: 'The service could not answer',
        says: 'Nothing was changed that you do not see here. Try again shortly.',
      }
  }
}
