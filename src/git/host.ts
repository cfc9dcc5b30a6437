// Which host a repository is on, and what the host's conventions make of a commit message.
import type { Person } from './entries.ts'
import { type Host, isPullRequest, type MessageMeaning, plain } from './messages.ts'

/** The host of a web address; null if its name says nothing, which is usual for self-hosted servers. */
function hostOf(webUrl: string | null): Host | null {
  const host = webUrl ? new URL(webUrl).hostname : ''
  if (/gitlab/.test(host)) return 'gitlab'
  if (/gitea|forgejo|codeberg/.test(host)) return 'gitea'
  if (/bitbucket/.test(host)) return 'bitbucket'
  return /github/.test(host) ? 'github' : null
}

/** GitHub commits for its users, and then only the author is a person. GitHub Enterprise can change the address. */
export const isGitHub = ({ name, email }: Person): boolean =>
  email === 'noreply@github.com' || name === 'GitHub Enterprise'

/** The host by its address, else the host that most pull request merges look like; null for neither. */
export function findHost(
  commits: { meaning: MessageMeaning; committer: Person }[],
  webUrl: string | null,
): Host | null {
  const known = hostOf(webUrl)
  if (known) return known
  const counts = new Map<Host, number>()
  for (const { meaning, committer } of commits) {
    if (!isPullRequest(meaning)) continue
    const host = meaning.host ?? (isGitHub(committer) ? 'github' : null)
    if (host) counts.set(host, (counts.get(host) ?? 0) + 1)
  }
  return [...counts].sort(([, a], [, b]) => b - a)[0]?.[0] ?? null
}

/** The hosts on which #12 is a pull request. On the others it is an issue, or unknown. */
const namingByNumber: (Host | null)[] = ['github', 'gitea']

/** What a message means on a host. */
export function interpretForHost(meaning: MessageMeaning, host: Host | null): MessageMeaning {
  if (!isPullRequest(meaning)) return meaning
  // A merge commit of another host stays one: the repository may have moved from there.
  const isOfAnyHost = meaning.kind === 'pull_request' && meaning.host !== null
  const isOfHost = meaning.host === null ? namingByNumber.includes(host) : meaning.host === host
  return isOfAnyHost || isOfHost ? meaning : plain
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
