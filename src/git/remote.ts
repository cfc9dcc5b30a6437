import { isRepositoryName } from '../prompts/link.ts'

/** Where a repository is shown. */
export type Remote = {
  /** owner/name, or a longer path of groups on GitLab. */
  fullName: string
  /** Null when the web address is not known. */
  webUrl: string | null
}

/** user@host:path, the short form of ssh, unless it is a Windows path. */
const scpForm = /^(?:[^@/\s]+@)?([\w.-]{2,}):(?!\/\/)(.+)$/

/** Parses the address of a remote, or owner/name. Returns undefined for anything else, such as a folder. */
export function parseRemote(given: string): Remote | undefined {
  const scp = scpForm.exec(given)
  if (scp) return ofHost(scp[1] as string, scp[2] as string)
  if (!given.includes('://')) return isRepositoryName(given) ? { fullName: given, webUrl: null } : undefined
  if (!URL.canParse(given)) return undefined
  const { protocol, hostname, host, pathname } = new URL(given)
  if (protocol === 'https:' || protocol === 'http:') return ofHost(host, pathname, protocol)
  return ['ssh:', 'git:', 'git+ssh:'].includes(protocol) && hostname ? ofHost(hostname, pathname) : undefined
}

/** Leaves out a user name and a password in the address. */
function ofHost(host: string, path: string, protocol = 'https:'): Remote | undefined {
  const fullName = path.replace(/^\/+|\/+$/g, '').replace(/\.git$/, '')
  return isRepositoryName(fullName) ? { fullName, webUrl: `${protocol}//${host}/${fullName}` } : undefined
}
