/** The labels of a host, as a browser writes them in an Origin header. */
const labels = /^[a-z0-9_-]+(\.[a-z0-9_-]+)*$/
const wildcard = 'https://*.'
/** A host has at most 253 characters. Keys are cached with their origins, so the length must be bounded. */
const maxLength = 'https://'.length + 253 + ':65535'.length

/** Whether it is an origin as browsers send it (`https://example.com`), or `https://*.example.com` for subdomains. */
export function isOriginPattern(text: string): boolean {
  if (!text.startsWith(wildcard)) return isOrigin(text)
  const domain = text.slice(wildcard.length)
  return domain.includes('.') && isOrigin(`https://${domain}`)
}

/** Browsers send neither a path nor a default port, and lower case. */
const isOrigin = (text: string): boolean =>
  text.length <= maxLength && /^https?:\/\/[^*]+$/.test(text) && URL.parse(text)?.origin === text

/** Whether an Origin header matches. A wildcard stands for subdomains of any depth, but not for the domain itself. */
export const matchesOrigin = (origin: string, patterns: string[]): boolean =>
  patterns.some((pattern) => (pattern.startsWith(wildcard) ? isSubdomain(origin, pattern) : pattern === origin))

function isSubdomain(origin: string, pattern: string): boolean {
  const end = pattern.slice(wildcard.length - 1)
  if (!origin.startsWith('https://') || !origin.endsWith(end)) return false
  return labels.test(origin.slice('https://'.length, -end.length))
}
