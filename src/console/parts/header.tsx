import type { OwnKey } from '../client/api.ts'
import { useOwnKey } from '../client/organisation.ts'
import { href } from '../client/router.ts'
import { Button } from './button.tsx'
import { formatMoment, formatNumber } from './format.ts'
import { Code, LimitMeter, Scopes, Text, When } from './text.tsx'

/** A page of the console by its path, and its name in the navigation. */
type Place = { path: string; name: string }

/** The organisation, its usage, the navigation and the current key. */
export function Header({ places, path, onSignOut }: { places: Place[]; path: string; onSignOut(): void }) {
  const own = useOwnKey()
  return (
    <header>
      <div class="row bar">
        <a class="organisation cut" href={href('/')}>
          {own ? <Text>{own.organisation.name}</Text> : 'prompt-signals'}
        </a>
        {own?.usage && (
          <a class="row usage fine" href={href('/usage')}>
            <span>{`${formatNumber(own.usage.used)} of ${formatNumber(own.usage.limit)} this month`}</span>
            <LimitMeter {...own.usage} label="Used this month" />
          </a>
        )}
        <a class="fine" href={href('/guides/overview')}>
          Docs
        </a>
        {own && <KeyMenu own={own} onSignOut={onSignOut} />}
      </div>
      <Nav
        class="places"
        label="Main"
        places={places}
        isHere={(place) => path !== '' && partOf(place) === partOf(path)}
      />
    </header>
  )
}

/** The part of the console that a path belongs to. */
const partOf = (path: string): string | undefined => path.split('/')[1]

type NavProps = { class: string; label: string; places: Place[]; isHere(path: string): boolean }

export const Nav = ({ class: look, label, places, isHere }: NavProps) => (
  <nav class={`tabs ${look}`} aria-label={label}>
    {places.map(({ path, name }) => (
      <a key={path} href={href(path)} aria-current={isHere(path) ? 'page' : undefined}>
        {name}
      </a>
    ))}
  </nav>
)

const KeyMenu = ({ own, onSignOut }: { own: OwnKey; onSignOut(): void }) => (
  <>
    <button type="button" class="small cut menu" popovertarget="key-menu">
      Key “<Text>{own.name}</Text>”
    </button>
    <div id="key-menu" class="menu-content" popover="auto">
      <p>
        <Code>{`${own.prefix}…`}</Code>
        <br />
        {own.expires_at ? (
          <>
            Expires <When time={own.expires_at} />, {formatMoment(own.expires_at)}
          </>
        ) : (
          'Does not expire'
        )}
      </p>
      <p>Permissions</p>
      <p>
        <Scopes scopes={own.scopes} />
      </p>
      <Button does="Sign out" onClick={onSignOut} />
    </div>
  </>
)
