import type { Impact } from './schema.ts'
import type { SideBySide } from './schema_compare.ts'

export type PromptName = { id: string; name: string }

/** What commands read, by the queries of the interface: implemented over the database and over HTTP. */
export type ImpactSource = {
  readImpact(
    prompt: string,
    query: URLSearchParams,
  ): Promise<{ prompt: PromptName; totalCount: number; data: Impact[] }>
  readCompare(prompt: string, query: URLSearchParams): Promise<SideBySide>
  /** A page of prompts and their live changes. */
  listPrompts(
    query: URLSearchParams,
  ): Promise<{ data: { prompt: PromptName; latest: Impact | null }[]; nextCursor: string | null }>
}
