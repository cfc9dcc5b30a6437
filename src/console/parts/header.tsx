import { useEffect, useRef } from 'preact/hooks'
import { href } from '../client/root.ts'
import type { OwnKey, Scope } from '../client/schemas.ts'
import { formatMoment, formatNumber } from './format.ts'
import { settingsPages } from './settings_nav.tsx'
import { Text, When } from './text.tsx'

type HeaderProps = { own: OwnKey | undefined; path: string | undefined; onSignOut(): void }

/** The organisation, its month, the places, and the key that is signed in. */
export const Header = ({ own, path, onSignOut }: HeaderProps) => (
  <header>
    <div class="bar">
      <a class="organisation" href={href('/')}>
        {own ? <Text>{own.organisation.name}</Text> : 'prompt-signals'}
      </a>
      {own?.usage && <UsageBar usage={own.usage} />}
      <a class="docs" href={href('/docs')}>
        Docs
      </a>
      {own && <KeyMenu own={own} onSignOut={onSignOut} />}
    </div>
    <nav class="places" aria-label="Places">
      {own &&
        placesFor(own.scopes).map(({ place, name, isHere }) => (
          <a key={name} href={href(place)} aria-current={path && isHere(path) ? 'page' : undefined}>
            {name}
          </a>
        ))}
    </nav>
  </header>
)

/** Those that a key of these scopes can open. */
function placesFor(scopes: Scope[]) {
  const settings = settingsPages.find(({ scope }) => scopes.includes(scope))
  return [
    ...(scopes.includes('signals:read')
      ? [place('/', 'Prompts', (path) => path === '/' || path.startsWith('/prompts'))]
      : []),
    ...(scopes.includes('signals:read') ? [place('/signals', 'Signals', (path) => path === '/signals')] : []),
    ...(scopes.includes('usage:read') ? [place('/usage', 'Usage', (path) => path === '/usage')] : []),
    ...(settings ? [place(settings.place, 'Settings', (path) => path.startsWith('/settings/'))] : []),
  ]
}

const place = (place: string, name: string, isHere: (path: string) => boolean) => ({ place, name, isHere })

function UsageBar({ usage: { used, limit } }: { usage: NonNullable<OwnKey['usage']> }) {
  const text = `${formatNumber(used)} of ${formatNumber(limit)} this month`
  return (
    <a class="usage" href={href('/usage')}>
      <span>{text}</span>
      <meter
        min={0}
        max={Math.max(limit, 1)}
        high={limit * 0.9}
        optimum={0}
        value={limit === 0 ? 1 : used}
        aria-label={text}
      />
    </a>
  )
}

function KeyMenu({ own, onSignOut }: { own: OwnKey; onSignOut(): void }) {
  const menu = useRef<HTMLDetailsElement>(null)
  useEffect(() => {
    const close = (event: Event) => {
      const isEscape = event instanceof KeyboardEvent && event.key === 'Escape'
      const isOutside = event.type === 'click' && !menu.current?.contains(event.target as Node)
      if (!menu.current?.open || !(isEscape || isOutside)) return
      menu.current.open = false
      if (isEscape) menu.current.querySelector('summary')?.focus()
    }
    addEventListener('keydown', close)
    addEventListener('click', close)
    return () => {
      removeEventListener('keydown', close)
      removeEventListener('click', close)
    }
  }, [])
  return (
    <details class="menu" ref={menu}>
      <summary>
        Key <Text>{own.name}</Text>
      </summary>
      <div class="menu-content">
        <p>
          <code class="text">{own.prefix}…</code>
          <br />
          {own.expires_at ? (
            <>
              Expires <When time={own.expires_at} />, {formatMoment(own.expires_at)}
            </>
          ) : (
            'Does not expire'
          )}
        </p>
        <p>It may</p>
        <ul class="scopes">
          {own.scopes.map((scope) => (
            <li key={scope}>
              <code>{scope}</code>
            </li>
          ))}
        </ul>
        <button type="button" onClick={onSignOut}>
          Sign out
        </button>
      </div>
    </details>
  )
}
