// The form of an endpoint's URL. Its address is checked with every connection, because names can resolve to another later.
import type { Detail } from '../errors.ts'
import type { HostList } from '../setting_types.ts'
import { isAllowedHost } from './reachable.ts'
import type { EndpointKind } from './schema.ts'

const slackHost = 'hooks.slack.com'

/** Returns the URL in its normal form, or what is wrong with it. Messages never contain it. Allowed hosts may use http. */
export function parseEndpointUrl(
  { url, kind }: { url: string; kind: EndpointKind },
  allowedHosts: HostList | undefined,
): string | Detail {
  if (!URL.canParse(url)) return { path: '/url', message: 'must be a URL, such as https://example.com/webhooks' }
  const { protocol, hostname, username, password, href } = new URL(url)
  const isOpen = protocol === 'https:' || (protocol === 'http:' && isAllowedHost(allowedHosts, hostname))
  if (!isOpen) return { path: '/url', message: 'must begin with https://, unless WEBHOOK_ALLOWED_HOSTS names its host' }
  if (username || password) return { path: '/url', message: 'must have no user name and no password' }
  if (href.includes('#')) return { path: '/url', message: 'must have no fragment' }
  // Slack accepts nothing else, and would answer every webhook with an error.
  if (hostname === slackHost && kind !== 'slack') {
    return { path: '/kind', message: `must be slack for a URL of ${slackHost}` }
  }
  return href
}

/** The URL without what could be a secret: its query, and of an incoming webhook everything after the host. */
export function maskUrl({ url, kind }: { url: string; kind: EndpointKind }): string {
  const { origin, pathname, search } = new URL(url)
  return kind === 'slack' ? `${origin}/…` : `${origin}${pathname}${search && '?…'}`
}
