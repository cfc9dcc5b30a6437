import { href } from '../client/root.ts'
import type { Scope } from '../client/schemas.ts'

/** The pages of the settings, each with the scope that it needs. */
export const settingsPages: { place: string; name: string; scope: Scope }[] = [
  { place: '/settings/keys', name: 'Keys', scope: 'keys:read' },
  { place: '/settings/prompts', name: 'Prompts and links', scope: 'prompts:read' },
  { place: '/settings/webhooks', name: 'GitHub webhook', scope: 'webhooks:write' },
  { place: '/settings/audit', name: 'Audit log', scope: 'keys:read' },
]

export const SettingsNav = ({ scopes, path }: { scopes: Scope[]; path: string }) => (
  <nav class="subnav" aria-label="Settings">
    {settingsPages
      .filter(({ scope }) => scopes.includes(scope))
      .map(({ place, name }) => (
        <a key={place} href={href(place)} aria-current={place === path ? 'page' : undefined}>
          {name}
        </a>
      ))}
  </nav>
)
