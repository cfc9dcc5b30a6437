import type { ComponentChildren } from 'preact'
import type { Failure } from '../client/failure.ts'
import { type Query, retryFailed } from '../client/query.ts'
import { Button } from './button.tsx'
import { CopyButton } from './copy.tsx'
import { formatDistance } from './format.ts'
import { Code } from './text.tsx'

type AwaitProps<Data> = { query: Query<Data>; children(data: Data): ComponentChildren }

/** Whether the same request may succeed later. */
const isPassing = ({ kind }: Failure): boolean => ['offline', 'unavailable', 'failed', 'limited'].includes(kind)

/** Shows the data, or why it is missing. A short wait shows nothing. */
export function Await<Data>({ query: { data, failure, isSlow }, children }: AwaitProps<Data>) {
  // Earlier data stays visible while there is no other, but not for a key that has lost access.
  return (
    <>
      {failure && <FailureNote failure={failure} retry={retryFailed} />}
      {data !== undefined && (!failure || isPassing(failure)) && children(data)}
      {data === undefined && !failure && (isSlow ? <Skeleton /> : <div class="pending" />)}
    </>
  )
}

const Skeleton = () => (
  <div class="skeleton" role="status">
    <span class="visually-hidden">Loading</span>
    {[72, 56, 64, 48].map((width) => (
      <span key={width} class="bone" style={{ width: `${width}%` }} />
    ))}
  </div>
)

type NoteProps = { title: string; role?: 'alert'; children?: ComponentChildren }

/** Why a page is empty, and what to do about it. */
export const Note = ({ title, role, children }: NoteProps) => (
  <div class="note" role={role}>
    <p class="note-title">{title}</p>
    {children}
  </div>
)

/** What is said of each: its title, and what to do about it. */
const words: Record<Failure['kind'], [title: string, advice: string]> = {
  offline: ['The service cannot be reached', 'Check the connection, then try again.'],
  'signed out': ['Invalid key', 'The key is unknown, revoked or expired. Sign in with another key.'],
  forbidden: ['You don’t have access', ''],
  missing: ['Not found', 'It does not exist, or belongs to another organisation.'],
  invalid: ['Invalid input', ''],
  limited: ['Too many requests', 'Try again in a moment.'],
  unavailable: ['Service unavailable', 'It is overloaded, or its database does not answer. Try again shortly.'],
  failed: ['Something went wrong', 'Try again shortly.'],
}

/** What the form calls a field that the API names, such as /origins/0. */
function labelOf(path: string): string {
  const [name = '', ...places] = path.replace(/^\//, '').split('/')
  const control = document.querySelector(`dialog [name="${CSS.escape(name)}"]`)
  const label = control?.closest('.field, fieldset')?.querySelector('label, legend')?.textContent
  return label ? [label, ...places.map((place) => Number(place) + 1)].join(' ') : path.replace(/^\//, '')
}

/** Problems that the API names by its parameters, in the words of the page. */
const rewordings: Record<string, string> = { 'since must be before until': '“From” must be earlier than “Before”.' }

/** Why a request failed, and what to do about it. */
export const FailureNote = ({ failure, retry }: { failure: Failure; retry?: () => void }) => (
  <Note title={words[failure.kind][0]} role="alert">
    <p>{adviceOn(failure)}</p>
    {failure.kind === 'invalid' && failure.details.length > 0 && (
      <ul>
        {failure.details.map(({ path, message }) => (
          <li key={path}>
            {rewordings[`${path} ${message}`] ?? (
              <>
                {path && <strong>{labelOf(path)}</strong>} {message}
              </>
            )}
          </li>
        ))}
      </ul>
    )}
    {failure.kind === 'failed' && failure.requestId && (
      <p>
        Request <Code>{failure.requestId}</Code> <CopyButton text={failure.requestId} of="the request id" />
      </p>
    )}
    {retry && isPassing(failure) && <Button does="Try again" onClick={retry} />}
  </Note>
)

function adviceOn(failure: Failure): ComponentChildren {
  if (failure.kind === 'forbidden' && failure.scope) {
    return (
      <>
        Your key lacks the scope <code>{failure.scope}</code>. Sign in with a key that has it.
      </>
    )
  }
  if (failure.kind === 'forbidden' || failure.kind === 'invalid') return failure.message
  if (failure.kind === 'limited' && failure.againAt) return `Try again ${formatDistance(failure.againAt)}.`
  return words[failure.kind][1]
}
