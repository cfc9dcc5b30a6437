import { useEffect } from 'preact/hooks'
import { href } from '../client/router.ts'
import { Form, Input } from '../parts/field.tsx'
import { FailureNote } from '../parts/states.tsx'
import { Command } from '../parts/text.tsx'

/** Sign-in with a key. */
export function SignIn({ wasRefused, onSignIn }: { wasRefused: boolean; onSignIn(key: string): void }) {
  useEffect(() => {
    document.title = 'Sign in · prompt-signals'
  }, [])
  const submit = (form: FormData) => {
    const key = String(form.get('key')).trim()
    if (key !== '') onSignIn(key)
  }
  return (
    <main class="sign-in">
      <h1>prompt-signals</h1>
      <p>What changed, and whether users liked it.</p>
      {wasRefused && <FailureNote failure={{ kind: 'signed out' }} />}
      <Form onSubmit={submit}>
        <Input
          label="API key"
          hint="Shared by the tabs of this browser until you close them or sign out."
          name="key"
          type="password"
          autocomplete="off"
          spellcheck={false}
          placeholder="psk_…"
          required
        />
        <button type="submit" class="primary">
          Sign in
        </button>
      </Form>
      <details>
        <summary>Where do I get a key?</summary>
        <p>From the operator of the service. On its machine, this command prints a sign-in link:</p>
        <Command>prompt-signals console --org ORG</Command>
        <p>On a new service, this one creates an organisation, a key and a prompt first:</p>
        <Command>prompt-signals init</Command>
      </details>
      <p>
        <a href={href('/guides/overview')}>Documentation</a>
      </p>
    </main>
  )
}
