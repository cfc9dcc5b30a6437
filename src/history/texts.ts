// The texts that prompts had after their changes. They are stored only for organisations that turned it on.
import { createHash } from 'node:crypto'
import { operator, recordAudit } from '../audit/record.ts'
import type { Clock } from '../clock.ts'
import type { Db, Sql } from '../db/client.ts'
import { invalid } from '../errors.ts'
import { repeatStep } from '../lib/periodic.ts'
import type { Prompt } from '../prompts/find.ts'
import { commitKey, createWholeFinder, isShortHash, spellingsOf } from './identity.ts'
import { maxTextBytes } from './schema.ts'
import { selectCommitEntries } from './store_known.ts'
import {
  deleteUnusedTexts,
  insertTexts,
  linkTexts,
  lockStoring,
  mayStoreTexts,
  selectStoredTexts,
  type TextRef,
  unlinkTexts,
} from './store_texts.ts'

export { findEntry } from './store_texts.ts'

/** The size of a step: the embedded engine does nothing else meanwhile. */
const stepRows = 500

export const hashText = (text: string | Uint8Array): string => createHash('sha256').update(text).digest('hex')

/** Whether Postgres can store the text, and it is not too large. */
export const isStorableText = (text: string): boolean =>
  !text.includes('\0') && text.isWellFormed() && Buffer.byteLength(text) <= maxTextBytes

export function requireTexts(texts: string[]): Map<string, string> {
  const odd = texts.findIndex((text) => !isStorableText(text))
  if (odd >= 0) {
    const message = `must be well-formed text without NUL, of at most ${maxTextBytes / 1024} KiB`
    throw invalid('The batch is not valid.', [{ path: `/texts/${odd}`, message }])
  }
  return new Map(texts.map((text) => [hashText(text), text]))
}

/** Stores the texts that entries name, and returns the hashes of those that are neither given nor stored. */
export async function recordTexts(sql: Sql, organisationId: number, refs: TextRef[], texts: Map<string, string>) {
  await lockStoring(sql, organisationId)
  await requireStoring(sql, organisationId)
  const named = new Set(refs.map(({ text_hash }) => text_hash))
  await insertTexts(sql, organisationId, new Map([...texts].filter(([hash]) => named.has(hash))))
  // An entry may have the whole hash of a commit that was reported with a short one.
  const short = refs.filter(({ commit_sha }) => isShortHash(commitKey(commit_sha)))
  const commits = short.map(({ prompt_id, commit_sha }) => ({ prompt_id, ...spellingsOf(commit_sha) }))
  const known = short.length > 0 ? await selectCommitEntries(sql, organisationId, commits) : []
  const findWhole = createWholeFinder([...known, ...refs])
  const whole = refs.map((ref) => ({ ...ref, commit_sha: findWhole(ref) }))
  return linkTexts(sql, organisationId, whole)
}

/** Returns the hashes of the texts that entries name and that are neither given nor stored. */
export async function findMissingTexts(sql: Sql, organisationId: number, refs: TextRef[], texts: Map<string, string>) {
  await requireStoring(sql, organisationId)
  const named = new Set(refs.flatMap(({ text_hash }) => (text_hash && !texts.has(text_hash) ? [text_hash] : [])))
  return named.difference(await selectStoredTexts(sql, organisationId, [...named]))
}

async function requireStoring(sql: Sql, organisationId: number): Promise<void> {
  if (await mayStoreTexts(sql, organisationId)) return
  throw invalid('The organisation does not store texts. Turn it on: prompt-signals orgs update ORG --store-text on', [])
}

/** Erases the texts of a prompt, or of all prompts of an organisation, in short steps. Returns the number of entries. */
export async function eraseTexts(db: Db, organisationId: number, promptId: number | null = null): Promise<number> {
  const entries = await repeatStep(stepRows, () => unlinkTexts(db.sql, organisationId, promptId, stepRows))
  await deleteUnused(db, organisationId)
  return entries
}

/** Erases the texts of a prompt. The audit entry is written first, because the command may be interrupted. */
export async function forgetTexts(db: Db, clock: Clock, { id, organisationId, publicId: subject }: Prompt) {
  const event = { organisationId, action: 'prompt.texts_erased', subject } as const
  await db.transaction((sql) => recordAudit(sql, clock, operator, event))
  return eraseTexts(db, organisationId, id)
}

/** Deletes the texts whose entries are gone, or whose organisation no longer stores texts. */
export const pruneTexts = (db: Db): Promise<number> => deleteUnused(db, null)

const deleteUnused = (db: Db, organisationId: number | null): Promise<number> =>
  repeatStep(stepRows, () => db.transaction((sql) => deleteUnusedTexts(sql, organisationId, stepRows)))
