import type { Host } from './messages.ts'

/** Where a repository is shown. */
export type Remote = {
  /** Its owner and name, as owner/name; GitLab has groups of groups. */
  fullName: string
  /** Its web address; null when that is not known. */
  webUrl: string | null
}

const name = /^[\w.-]{1,100}(?:\/[\w.-]{1,100}){1,9}$/
/** user@host:path, as ssh has it, unless it is a Windows path. */
const scpForm = /^(?:[^@/\s]+@)?([\w.-]{2,}):(?!\/\/)(.+)$/

/** Parses the address of a remote, or owner/name; undefined for what is neither, as the path of a folder. */
export function parseRemote(given: string): Remote | undefined {
  const scp = scpForm.exec(given)
  if (scp) return ofHost(scp[1] as string, scp[2] as string)
  if (!given.includes('://')) return name.test(given) ? { fullName: given, webUrl: null } : undefined
  if (!URL.canParse(given)) return undefined
  const { protocol, hostname, host, pathname } = new URL(given)
  if (protocol === 'https:' || protocol === 'http:') return ofHost(host, pathname, protocol)
  return ['ssh:', 'git:', 'git+ssh:'].includes(protocol) && hostname ? ofHost(hostname, pathname) : undefined
}

/** A user name and a password in the address stay out of it. */
function ofHost(host: string, path: string, protocol = 'https:'): Remote | undefined {
  const fullName = path.replace(/^\/+|\/+$/g, '').replace(/\.git$/, '')
  return name.test(fullName) ? { fullName, webUrl: `${protocol}//${host}/${fullName}` } : undefined
}

/** The host by its name; null for a name that says nothing, as of most servers of one's own. */
export function hostOf(webUrl: string | null): Host | null {
  const host = webUrl ? new URL(webUrl).hostname : ''
  if (/gitlab/.test(host)) return 'gitlab'
  if (/gitea|forgejo|codeberg/.test(host)) return 'gitea'
  if (/bitbucket/.test(host)) return 'bitbucket'
  return /github/.test(host) ? 'github' : null
}

const pullRequestPaths: Record<Host, string> = {
  github: 'pull',
  gitlab: '-/merge_requests',
  gitea: 'pulls',
  bitbucket: 'pull-requests',
}

/** Where a host shows a pull request. */
export const pullRequestUrl = (webUrl: string, host: Host, number: number): string =>
  `${webUrl}/${pullRequestPaths[host]}/${number}`
