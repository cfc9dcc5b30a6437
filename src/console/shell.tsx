import type { FunctionComponent } from 'preact'
import { useEffect, useState } from 'preact/hooks'
import { useOwnKey } from './client/own_key.ts'
import { forgetAnswers, whenSignedOut } from './client/query.ts'
import { usePlace } from './client/router.ts'
import type { Scope } from './client/schemas.ts'
import { currentKey, forgetKey, keepKey, takeKeyFromAddress } from './client/session.ts'
import { Audit } from './pages/audit.tsx'
import { Compare } from './pages/compare.tsx'
import { Keys } from './pages/keys.tsx'
import { Nothing } from './pages/nothing.tsx'
import { Prompt } from './pages/prompt.tsx'
import { PromptLinks } from './pages/prompt_links.tsx'
import { Prompts } from './pages/prompts.tsx'
import { SignIn } from './pages/sign_in.tsx'
import { Signals } from './pages/signals.tsx'
import { Usage } from './pages/usage.tsx'
import { Webhooks } from './pages/webhooks.tsx'
import { Header } from './parts/header.tsx'
import { Page } from './parts/page.tsx'
import { SettingsNav } from './parts/settings_nav.tsx'
import { FailureNote } from './parts/states.tsx'
import type { ConsolePath } from './paths.ts'

type PageProps = { params: Record<string, string> }

/** Each page, and the scope without which it has nothing to show. */
const pages: Record<ConsolePath, { Content: FunctionComponent<PageProps>; scope: Scope }> = {
  '/': { Content: Prompts, scope: 'signals:read' },
  '/prompts/:prompt_id': { Content: Prompt, scope: 'signals:read' },
  '/prompts/:prompt_id/compare': { Content: Compare, scope: 'signals:read' },
  '/signals': { Content: Signals, scope: 'signals:read' },
  '/usage': { Content: Usage, scope: 'usage:read' },
  '/settings/keys': { Content: Keys, scope: 'keys:read' },
  '/settings/prompts': { Content: PromptLinks, scope: 'prompts:read' },
  '/settings/webhooks': { Content: Webhooks, scope: 'webhooks:write' },
  '/settings/audit': { Content: Audit, scope: 'keys:read' },
}

/** What surrounds the pages, and the way in. */
export function Shell() {
  const [key, setKey] = useState(currentKey)
  const [wasRefused, setRefused] = useState(false)

  useEffect(() => {
    const leave = (isRefused: boolean) => {
      forgetKey()
      forgetAnswers()
      setRefused(isRefused)
      setKey(null)
    }
    whenSignedOut(() => leave(true))
    const enter = () => {
      if (!takeKeyFromAddress()) return
      forgetAnswers()
      setKey(currentKey())
    }
    addEventListener('hashchange', enter)
    return () => removeEventListener('hashchange', enter)
  }, [])

  const signIn = (given: string) => {
    keepKey(given)
    setRefused(false)
    setKey(currentKey())
  }
  const signOut = () => {
    forgetKey()
    forgetAnswers()
    setRefused(false)
    setKey(null)
  }
  return key === null ? (
    <SignIn wasRefused={wasRefused} onSignIn={signIn} />
  ) : (
    <SignedIn key={key} onSignOut={signOut} />
  )
}

function SignedIn({ onSignOut }: { onSignOut(): void }) {
  const { path, params } = usePlace()
  const { data } = useOwnKey()
  const shown = path && pages[path]
  const isForbidden = shown && data && !data.data.scopes.includes(shown.scope)
  return (
    <>
      <a class="skip" href="#content">
        Skip to the content
      </a>
      <Header own={data?.data} path={path} onSignOut={onSignOut} />
      <main id="content" tabIndex={-1}>
        {path?.startsWith('/settings/') && data && <SettingsNav scopes={data.data.scopes} path={path} />}
        {!shown && <Nothing />}
        {isForbidden && (
          <Page title="No access">
            <FailureNote failure={{ kind: 'forbidden', scope: shown.scope }} />
          </Page>
        )}
        {shown && !isForbidden && <shown.Content key={`${path} ${JSON.stringify(params)}`} params={params} />}
      </main>
    </>
  )
}
