import type { Clock } from '../clock.ts'
import { type Detail, invalid } from '../errors.ts'
import { parseInstant } from '../lib/times.ts'
import { createValidator } from '../lib/validate.ts'
import { NewHistoryEntry } from './schema.ts'
import type { EntryRow } from './store.ts'

const validate = createValidator(NewHistoryEntry, 'The history entry')

/** Validates an entry by its schema and by the rules of its action. */
export function parseEntry(given: unknown, clock: Clock): Omit<EntryRow, 'id'> {
  const entry = validate(given)
  const { action, user, commit_sha, branch_name, pr_number = null, pr_url = null } = entry
  const createdAt = entry.created_at === undefined ? clock.now() : parseInstant(entry.created_at)
  const problems: Detail[] = []
  if (!createdAt) {
    problems.push({
      path: '/created_at',
      message: 'must be an ISO 8601 time with its zone, such as 2026-11-14T23:35:00Z',
    })
  }
  if (action === 'deployed' && (pr_number !== null || pr_url !== null)) {
    problems.push({ path: '/pr_number', message: 'must be absent, with pr_url, when the action is deployed' })
  }
  if (action !== 'deployed' && (pr_number === null || pr_url === null)) {
    problems.push({ path: '/pr_number', message: `must be given, with pr_url, when the action is ${action}` })
  }
  if (pr_url !== null && !/^https?:\/\/[^\s]+$/.test(pr_url)) {
    problems.push({ path: '/pr_url', message: 'must be an http or https address' })
  }
  if (!createdAt || problems.length > 0) throw invalid('The history entry is not valid.', problems)
  return {
    action,
    user_name: user.name,
    user_email: user.email,
    commit_sha,
    branch_name,
    pr_number,
    pr_url,
    created_at: createdAt,
  }
}
