// Names of repositories, and the web addresses of what is in them. The console runs it in a browser.

/** What a host's software looks like in addresses and messages. Forgejo does what Gitea does. */
export type HostKind = 'github' | 'gitlab' | 'gitea' | 'bitbucket'

/** A repository without a host is at this one. */
const defaultHost = 'github.com'

const wellFormed = /^[\w.-]{1,100}(?::[0-9]{1,5})?(?:\/[\w.-]{1,100}){1,9}$/

/**
 * Normalises `host/path`, or `owner/name` for github.com, in lower case and without that host. The first part is a host
 * if it has a dot or a port, or if there are more than two. Returns undefined for anything else.
 */
export function parseRepository(text: string): string | undefined {
  const parts = text.toLowerCase().split('/')
  if (!wellFormed.test(text) || parts.some((part) => /^\.+$/.test(part))) return undefined
  const [first = '', ...rest] = parts
  if (first !== defaultHost) return parts.join('/')
  return rest.length === 2 ? rest.join('/') : undefined
}

/** The host and the path of a normalised repository. */
export function splitRepository(repository: string): { host: string; path: string } {
  const [first = '', ...rest] = repository.split('/')
  const hasHost = rest.length > 1 || /[.:]/.test(first)
  return hasHost ? { host: first, path: rest.join('/') } : { host: defaultHost, path: repository }
}

/** The kind of a host by its name; null if the name says nothing, which is usual for self-hosted servers. */
export function hostKindOf(host: string): HostKind | null {
  if (/gitlab/.test(host)) return 'gitlab'
  if (/gitea|forgejo|codeberg/.test(host)) return 'gitea'
  if (/bitbucket/.test(host)) return 'bitbucket'
  return /github/.test(host) ? 'github' : null
}

type Paths = { commit: string; compare(base: string, head: string): string; pullRequest: string }

const compare = (base: string, head: string) => `compare/${base}...${head}`

const paths: Record<HostKind, Paths> = {
  github: { commit: 'commit/', compare, pullRequest: 'pull/' },
  gitlab: {
    commit: '-/commit/',
    compare: (base, head) => `-/${compare(base, head)}`,
    pullRequest: '-/merge_requests/',
  },
  gitea: { commit: 'commit/', compare, pullRequest: 'pulls/' },
  bitbucket: {
    commit: 'commits/',
    compare: (base, head) => `branches/compare/${head}%0D${base}`,
    pullRequest: 'pull-requests/',
  },
}

const bitbucketCloud = 'https://bitbucket.org/'

/** The address of a pull request. `url` is the address that its repository is cloned from, without `.git`. */
export function pullRequestUrl(url: string, kind: HostKind, number: number): string {
  // Bitbucket Data Center shows a repository at another path than it serves it.
  const server = kind === 'bitbucket' && !url.startsWith(bitbucketCloud)
  const shown = server
    ? url.replace(/^(https?:\/\/[^/]+)\/(?:scm\/)?([^/]+)\/([^/]+)$/, '$1/projects/$2/repos/$3')
    : url
  return `${shown}/${paths[kind].pullRequest}${number}`
}

/** The words of the host for a pull request, by its address. GitLab has merge requests, and # is an issue there. */
export const pullRequestWords = (url: string | null | undefined) =>
  siteOfPullRequest(url ?? '')?.kind === 'gitlab'
    ? { noun: 'merge request', short: 'MR', sign: '!' }
    : { noun: 'pull request', short: 'PR', sign: '#' }

/** The number of a pull request as its host writes it: #45, or !45. */
export const showNumber = (change: { pr_number?: number | null; pr_url?: string | null }): string =>
  `${pullRequestWords(change.pr_url).sign}${change.pr_number}`

const hash = /^[0-9a-f]{7,64}$/i

/** Addresses of commits and comparisons, which are null for what is not a hash. */
type RepositoryLinks = {
  commit(sha: string): string | null
  compare(baseSha: string, headSha: string): string | null
}

/**
 * Links into a prompt's repository, beside the pull request of the change if it has one. Returns null for a host that
 * is not known, because a wrong link is worse than none.
 */
export function findLinks(repository: string | null, prUrl: string | null = null): RepositoryLinks | null {
  const site = siteOfPullRequest(prUrl ?? '') ?? (repository ? siteOfRepository(repository) : null)
  if (!site) return null
  const { url, kind } = site
  const hasCompare = kind !== 'bitbucket' || url.startsWith(bitbucketCloud)
  return {
    commit: (sha) => (hash.test(sha) ? `${url}/${paths[kind].commit}${sha}` : null),
    compare: (base, head) =>
      hasCompare && hash.test(base) && hash.test(head) ? `${url}/${paths[kind].compare(base, head)}` : null,
  }
}

type Site = { url: string; kind: HostKind }

/** A pull request's address shows the kind of its host. */
function siteOfPullRequest(prUrl: string): Site | null {
  for (const [kind, { pullRequest }] of Object.entries(paths) as [HostKind, Paths][]) {
    const [, url] = new RegExp(`^(https?://[^/\\s]+/[^\\s?#]+?)/${pullRequest}\\d+/?$`).exec(prUrl) ?? []
    if (url) return { url, kind }
  }
  return null
}

/** Unknown for a host with a port or without a dot, which may not speak HTTPS, and for Bitbucket Data Center. */
function siteOfRepository(repository: string): Site | null {
  const { host, path } = splitRepository(repository)
  const kind = hostKindOf(host)
  const url = `https://${host}/${path}`
  const isKnown = /^[^:]+\.[^:]+$/.test(host) && (kind !== 'bitbucket' || url.startsWith(bitbucketCloud))
  return kind && isKnown ? { url, kind } : null
}
