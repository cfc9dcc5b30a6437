import type { FunctionComponent } from 'preact'
import type { ConsolePath } from '../http/console_paths.ts'
import type { Scope } from '../lib/scopes.ts'
import type { Failure } from './client/failure.ts'
import { useOwnKeyQuery } from './client/organisation.ts'
import { retryFailed } from './client/query.ts'
import { usePlace } from './client/router.ts'
import { useSession } from './client/use_session.ts'
import { AllChanges } from './pages/all_changes.tsx'
import { Audit } from './pages/audit.tsx'
import { Compare } from './pages/compare.tsx'
import { Endpoints } from './pages/endpoints.tsx'
import { FromGit } from './pages/from_git.tsx'
import { Keys } from './pages/keys.tsx'
import { NotFound } from './pages/not_found.tsx'
import { Prompt } from './pages/prompt.tsx'
import { PromptLinks } from './pages/prompt_links.tsx'
import { Prompts } from './pages/prompts.tsx'
import { SignIn } from './pages/sign_in.tsx'
import { Signals } from './pages/signals.tsx'
import { Switch } from './pages/switch.tsx'
import { Usage } from './pages/usage.tsx'
import { Button } from './parts/button.tsx'
import { Header, Nav } from './parts/header.tsx'
import { Page } from './parts/page.tsx'
import { FailureNote } from './parts/states.tsx'

/** Each page, the scope without which it has nothing to show, and its name in the navigation if it stands there. */
const pages: Record<
  Exclude<ConsolePath, '/settings'>,
  { Content: FunctionComponent<{ prompt: string }>; scope: Scope; name?: string }
> = {
  '/': { Content: AllChanges, scope: 'signals:read', name: 'Changes' },
  '/prompts': { Content: Prompts, scope: 'signals:read', name: 'Prompts' },
  '/prompts/:prompt_id': { Content: Prompt, scope: 'signals:read' },
  '/prompts/:prompt_id/compare': { Content: Compare, scope: 'signals:read' },
  '/signals': { Content: Signals, scope: 'signals:read', name: 'Signals' },
  '/usage': { Content: Usage, scope: 'usage:read', name: 'Usage' },
  '/settings/keys': { Content: Keys, scope: 'keys:read', name: 'Keys' },
  '/settings/prompts': { Content: PromptLinks, scope: 'prompts:read', name: 'Prompts and links' },
  '/settings/webhooks': { Content: FromGit, scope: 'webhooks:write', name: 'From git' },
  '/settings/endpoints': { Content: Endpoints, scope: 'webhooks:read', name: 'Endpoints' },
  '/settings/audit': { Content: Audit, scope: 'keys:read', name: 'Audit log' },
}

const isSetting = (path: string): boolean => path.startsWith('/settings/')

/** The frame around the pages, and the sign-in. */
export function Shell({ linkKey }: { linkKey: string | null }) {
  const { key, wasRefused = false, question, linkFailure, isOpen, signIn, signOut } = useSession(linkKey)
  if (isOpen) return <div class="pending" />
  if (question) return <Switch {...question} onChoose={signIn} />
  if (key !== null) return <SignedIn key={key} linkFailure={linkFailure} onSignOut={signOut} />
  return <SignIn wasRefused={wasRefused} onSignIn={signIn} />
}

type SignedInProps = { linkFailure: Failure | undefined; onSignOut(): void }

function SignedIn({ linkFailure, onSignOut }: SignedInProps) {
  const { page } = usePlace()
  const { data, failure } = useOwnKeyQuery()
  const own = data?.data
  // Without the key's scopes there is no way to any page.
  const whyNone = own ? undefined : failure
  const places = Object.entries(pages).flatMap(([path, { scope, name }]) =>
    name && own?.scopes.includes(scope) ? [{ path, name }] : [],
  )
  const settings = places.filter(({ path }) => isSetting(path))
  const main = places.filter(({ path }) => !isSetting(path))
  if (settings.length > 0) main.push({ path: '/settings', name: 'Settings' })
  // The settings begin with the first that the key may see.
  const path = page?.path === '/settings' ? (settings[0]?.path ?? '/settings/keys') : (page?.path ?? '')
  const shown = Object.entries(pages).find(([place]) => place === path)?.[1]
  const isForbidden = shown && own && !own.scopes.includes(shown.scope)
  return (
    <>
      <a class="skip" href="#content">
        Skip to content
      </a>
      <Header places={main} path={path} onSignOut={onSignOut} />
      <main id="content" tabIndex={-1}>
        {linkFailure && <FailureNote failure={linkFailure} />}
        {own && isSetting(path) && (
          <Nav class="subnav" label="Settings" places={settings} isHere={(place) => place === path} />
        )}
        {whyNone && (
          <Page title="Not available">
            <FailureNote failure={whyNone} retry={retryFailed} />
            <Button does="Sign out" onClick={onSignOut} />
          </Page>
        )}
        {!shown && !whyNone && <NotFound what="Page" />}
        {isForbidden && (
          <Page title="No access">
            <FailureNote failure={{ kind: 'forbidden', scope: shown.scope }} />
          </Page>
        )}
        {page && shown && !isForbidden && !whyNone && (
          <shown.Content key={`${path} ${page.prompt}`} prompt={page.prompt} />
        )}
      </main>
    </>
  )
}
