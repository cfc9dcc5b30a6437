// What the message of a commit says about how the commit came to its branch.

/** The hosts whose messages and addresses are known. Forgejo writes and shows what Gitea does. */
export type Host = 'github' | 'gitlab' | 'gitea' | 'bitbucket'

export type MessageMeaning =
  /** The merge commit of a pull request. */
  | { kind: 'pull_request'; number: number; host: Host | null }
  /** All commits of a pull request as one, by its title; the host is the only one that writes it so, if there is one. */
  | { kind: 'squash'; number: number; host: Host | null }
  /** Another branch was merged in. Its commits count, and the merge itself does not. */
  | { kind: 'branch'; branch: string; from: string | null }
  | { kind: 'plain' }

/** One object for all of them, of which there are many. */
export const plain: MessageMeaning = { kind: 'plain' }

/** Whether a commit is what the merge of a pull request left on the branch. */
export const isPullRequest = (meaning: MessageMeaning): meaning is Extract<MessageMeaning, { number: number }> =>
  meaning.kind === 'pull_request' || meaning.kind === 'squash'

/** The history has no larger ones than an integer column holds. */
const number = '([1-9][0-9]{0,8})'

/** The subject of a merge commit, by the host that writes it. */
const mergeSubjects: [RegExp, Host | null][] = [
  [new RegExp(`^Merge pull request #${number} from `), 'github'],
  [new RegExp(`^Merge pull request '.*' \\(#${number}\\) from `), 'gitea'],
  [new RegExp(`^Merge pull request #${number} in `), 'bitbucket'],
  [new RegExp(`^Merged in .* \\(pull request #${number}\\)$`), 'bitbucket'],
  // The merge commit of a pull request whose title was chosen for it, on GitHub and on Gitea.
  [new RegExp(`^Merge\\b.* \\(#${number}\\)$`), null],
]

/** GitLab says it in the body, below any subject. A project may be named by its full path, or not at all. */
const gitlabReference = new RegExp(`^See merge request (?:[\\w./~-]+)?!${number}$`, 'm')

const squashTitles: [RegExp, Host | null][] = [
  [new RegExp(` \\(#${number}\\)$`), null],
  [new RegExp(` \\(!${number}\\)$`), 'gitlab'],
  [new RegExp(` \\(pull request #${number}\\)$`), 'bitbucket'],
]

const branchSubject =
  /^Merge (?:remote-tracking )?(?:branch(?:es)?|tag|commit) '([^']*)'(?:.*?\bof (\S+))?|^Merge [0-9a-f]{7,64} into [0-9a-f]{7,64}$/

/** Parses a message. A payload has no parents to tell a merge commit by, so that its message alone must do. */
export function parseMessage(message: string): MessageMeaning {
  const [subject = ''] = message.split('\n', 1)
  const inBody = gitlabReference.exec(message)
  if (inBody) return { kind: 'pull_request', number: Number(inBody[1]), host: 'gitlab' }
  for (const [pattern, host] of mergeSubjects) {
    const found = pattern.exec(subject)
    if (found) return { kind: 'pull_request', number: Number(found[1]), host }
  }
  const branch = branchSubject.exec(subject)
  if (branch) return { kind: 'branch', branch: branch[1] ?? '', from: branch[2] ?? null }
  for (const [pattern, host] of squashTitles) {
    const found = pattern.exec(subject)
    if (found) return { kind: 'squash', number: Number(found[1]), host }
  }
  return plain
}
