import type { HistoryEntry, NewHistoryEntry } from '../history/schema.ts'
import type { Call } from '../lib/rest.ts'
import type { PlanOptions, SkippedFile } from './plan.ts'
import type { Git } from './program.ts'
import type { Repository } from './repository.ts'

/** What a sync has done, or what a dry run would do. */
export type SyncChange =
  | ({ change: 'skipped'; prompt: null } & SkippedFile)
  | { change: 'created'; prompt: string | null; path: string; name: string }
  | { change: 'moved'; prompt: string; path: string; from: string; problem: string | null }
  | { change: 'missing'; prompt: string; path: string; problem: string }
  | { change: 'no_text'; prompt: string | null; path: string; problem: string }
  | ({ change: 'added' | 'changed'; prompt: string | null; path: string } & NewHistoryEntry)
  | ({ change: 'unreachable'; prompt: string; path: string; problem: string } & HistoryEntry)

export type SyncOptions = PlanOptions & {
  git: Git
  repository: Repository
  call: Call
  isDryRun: boolean
  /** Whether the texts of the files are stored, too. */
  withTexts?: boolean
  /** Whether the branch is recorded beside the one that the prompts follow. */
  isAlso?: boolean
  /** The option that names the service in a command. */
  service: string
  onChange(change: SyncChange): void
}
