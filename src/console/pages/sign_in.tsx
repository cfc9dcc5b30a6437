import { useEffect, useState } from 'preact/hooks'
import { href } from '../client/root.ts'
import { Field } from '../parts/field.tsx'

type SignInProps = { wasRefused: boolean; onSignIn(key: string): void }

/** The way in: a key, which stays in this tab. */
export function SignIn({ wasRefused, onSignIn }: SignInProps) {
  const [key, setKey] = useState('')
  useEffect(() => {
    document.title = 'Sign in · prompt-signals'
  }, [])
  const submit = (event: Event) => {
    event.preventDefault()
    if (key.trim() !== '') onSignIn(key)
  }
  return (
    <main class="sign-in">
      <h1>prompt-signals</h1>
      <p>What changed, and whether users liked it.</p>
      {wasRefused && (
        <div class="note note-failure" role="alert">
          <p class="note-title">That key is not accepted</p>
          <p>It is unknown, revoked or expired.</p>
        </div>
      )}
      <form onSubmit={submit}>
        <Field label="API key" hint="It stays in this tab until you close it or sign out.">
          {(tied) => (
            <input
              {...tied}
              type="password"
              autocomplete="off"
              spellcheck={false}
              placeholder="psk_…"
              value={key}
              onInput={(event) => setKey(event.currentTarget.value)}
              required
            />
          )}
        </Field>
        <button type="submit" class="primary">
          Sign in
        </button>
      </form>
      <details>
        <summary>Where do I get a key?</summary>
        <p>From the operator of the service. On its machine, this prints a link that opens signed in:</p>
        <pre>
          <code>prompt-signals console --org ORG</code>
        </pre>
      </details>
      <p>
        <a href={href('/docs')}>Documentation of the interface</a>
      </p>
    </main>
  )
}
