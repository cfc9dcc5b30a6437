import { nameAuthors, shortenCommit } from '../../impact/sentence.ts'
import { findLinks, showNumber } from '../../lib/repository_links.ts'
import type { Schemas } from '../client/api.ts'
import { Code, Ours, OuterLink, Text, When } from './text.tsx'

type Change = Schemas['HistoryEntry']
type Named = Pick<Change, 'pr_number' | 'commit_sha'> & { pr_url?: string | null }

const verbs: Record<Change['action'], string> = {
  deployed: 'deployed',
  pr_opened: 'opened',
  pr_merged: 'merged',
  pr_closed: 'closed',
}

/** The name that a change goes by in a sentence and on a flag. */
export const nameOf = (change: Named): string =>
  change.pr_number === null ? shortenCommit(change.commit_sha) : showNumber(change)

/** What changed, in the words of its author, or else its name. */
export const Title = ({ change }: { change: Named & { title?: string | null } }) => (
  <Text>{change.title || nameOf(change)}</Text>
)

/** Whose change it is. The words between the names have the direction of the page, whatever the names have. */
export const Authors = ({ change }: { change: Change }) => <Ours>{nameAuthors(change)}</Ours>

/** When, how and by whom, as "2 days ago, merged #7 by Ada": what is cut says the least. */
export const ChangeLine = ({ change }: { change: Change }) => (
  <>
    <When time={change.created_at} />, {verbs[change.action]} <Text>{nameOf(change)}</Text> by{' '}
    <Authors change={change} />
  </>
)

/** The same with links to the pull request and to the commit. */
export const ChangeLinks = ({ change, repository }: { change: Change; repository: string | null }) => (
  <>
    {verbs[change.action]}{' '}
    {change.pr_number !== null && (
      <>
        <OuterLink to={change.pr_url}>{showNumber(change)}</OuterLink>{' '}
      </>
    )}
    <OuterLink to={findLinks(repository, change.pr_url)?.commit(change.commit_sha) ?? null}>
      <Code>{shortenCommit(change.commit_sha)}</Code>
    </OuterLink>{' '}
    <span class="muted">
      on <Text>{change.branch_name}</Text>
    </span>
  </>
)
