import type { Outcome } from '../history/record.ts'
import type { EntryOf } from './entries.ts'

export type LinkedPrompt = { id: string; path: string }

/** What a sync needs of the service, whether it is reached by its database or over HTTP. */
export type SyncTarget = {
  /** The prompts that are linked to files of a repository. */
  listLinked(repository: string): Promise<LinkedPrompt[]>
  /** Makes a prompt for a file, and returns its id. */
  createPrompt(name: string, repository: string, path: string): Promise<string>
  /** Links a prompt to another file; says why not when that is not allowed. */
  moveLink(id: string, repository: string, path: string): Promise<string | null>
  /** Records entries, all or nothing, and says what became of each; of a dry run, what would become of it. */
  record(entries: EntryOf<string>[], isDryRun: boolean): Promise<Outcome[]>
}
