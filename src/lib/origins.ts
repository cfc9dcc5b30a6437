/** A host or its labels as a browser writes them in an Origin header, with nothing that could end a host. */
const labels = /^[a-z0-9_-]+(\.[a-z0-9_-]+)*$/
const wildcard = 'https://*.'
/** A host has at most 253 characters. A key with its origins is kept in memory, so none may be of any length. */
const maxLength = 'https://'.length + 253 + ':65535'.length

/** Whether it is an origin as browsers send it (`https://example.com`), or `https://*.example.com` for its subdomains. */
export function isOriginPattern(text: string): boolean {
  if (!text.startsWith(wildcard)) return isOrigin(text)
  const domain = text.slice(wildcard.length)
  return domain.includes('.') && isOrigin(`https://${domain}`)
}

/** What a browser sends has neither a path nor a default port, and is in lower case. */
const isOrigin = (text: string): boolean =>
  text.length <= maxLength && /^https?:\/\/[^*]+$/.test(text) && URL.parse(text)?.origin === text

/**
 * Whether an Origin header is one of the origins. Schemes and ports must be the same. A wildcard stands for subdomains of
 * any depth, but not for the domain itself.
 */
export const matchesOrigin = (origin: string, patterns: string[]): boolean =>
  patterns.some((pattern) => (pattern.startsWith(wildcard) ? isSubdomain(origin, pattern) : pattern === origin))

function isSubdomain(origin: string, pattern: string): boolean {
  const end = pattern.slice(wildcard.length - 1)
  if (!origin.startsWith('https://') || !origin.endsWith(end)) return false
  return labels.test(origin.slice('https://'.length, -end.length))
}
