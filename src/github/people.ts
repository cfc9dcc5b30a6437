import type { Person } from '../git/facts.ts'
import { fitPerson } from '../git/people.ts'
import type { Account, Commit } from './schema.ts'

/** The author of a commit, as the commit says. */
export function authorOf({ author: { name, email, username } }: Commit): Person {
  const account = { name: username ?? '', email: noReply(username || 'unknown') }
  return fitPerson({ name: name ?? '', email: email ?? '' }, account)
}

/** An account by the address that GitHub gives it; one that was deleted is shown as ghost, as GitHub does. */
export function accountPerson(account: Account | null | undefined): Person {
  const { login, id } = account ?? { login: 'ghost', id: 10_137 }
  return fitPerson({ name: login, email: noReply(`${id}+${login}`) })
}

const noReply = (local: string) => `${local}@users.noreply.github.com`
