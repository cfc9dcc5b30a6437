import type { Schemas } from '../client/schemas.ts'
import { Code, OuterLink, Text, When } from './text.tsx'

type Change = Schemas['HistoryEntry']

const verbs: Record<Change['action'], string> = {
  deployed: 'deployed',
  pr_opened: 'opened',
  pr_merged: 'merged',
  pr_closed: 'closed',
}

/** The name that a change goes by in a sentence and on a flag. */
export const nameOf = ({ pr_number, commit_sha }: Change): string =>
  pr_number === null ? commit_sha.slice(0, 7) : `#${pr_number}`

/** How, by whom and when, as "merged #7 by Ada, 2 days ago". */
export const ChangeLine = ({ change }: { change: Change }) => (
  <>
    {verbs[change.action]} <Text>{nameOf(change)}</Text> by <Text>{change.user.name}</Text>,{' '}
    <When time={change.created_at} />
  </>
)

/** The same with links to the pull request and to the commit. */
export const ChangeLinks = ({ change, repository }: { change: Change; repository: string | null }) => (
  <>
    {verbs[change.action]}{' '}
    {change.pr_number !== null && (
      <>
        <OuterLink to={change.pr_url}>#{change.pr_number}</OuterLink>{' '}
      </>
    )}
    <OuterLink to={commitUrl(change, repository)}>
      <Code>{change.commit_sha.slice(0, 7)}</Code>
    </OuterLink>{' '}
    <span class="muted">
      on <Text>{change.branch_name}</Text>
    </span>
  </>
)

/** Beside its pull request where it has one, else in the repository of the prompt, which GitHub has. */
function commitUrl({ pr_url, commit_sha }: Change, repository: string | null): string | null {
  if (!/^[0-9a-f]{7,64}$/i.test(commit_sha)) return null
  const [, place] = /^(https?:\/\/.+?)\/(?:-\/)?(?:pull|merge_requests)\/\d+\/?$/.exec(pr_url ?? '') ?? []
  if (place) return `${place}/commit/${commit_sha}`
  return repository && /^[\w.-]+\/[\w.-]+$/.test(repository)
    ? `https://github.com/${repository}/commit/${commit_sha}`
    : null
}
