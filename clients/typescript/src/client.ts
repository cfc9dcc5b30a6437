import type {
  ApiKey,
  ApiKeyChange,
  CreatedApiKey,
  ExportedSignal,
  HistoryEntry,
  ImpactPage,
  KeyRotation,
  MetadataFilters,
  NewApiKey,
  NewPrompt,
  Prompt,
  PromptChange,
  Query,
  SideBySide,
  Signal,
  SignalStats,
  Usage,
} from './api.ts'
import { readExport } from './export.ts'
import type { operations } from './openapi.d.ts'
import { type CallOptions, type ClientOptions, createSend, dataOf, defaultTimeoutMs } from './request.ts'
import { pathOf, signalsOf } from './signals.ts'

type Filters<Name extends keyof operations> = Omit<Query<Name>, 'cursor' | 'page' | 'limit'>

/** A client for everything that the service offers. Lists are iterators: they fetch the next page when it is reached. */
export type Client = ReturnType<typeof createClient>

export function createClient(options: ClientOptions) {
  const send = createSend(options)

  const get = <Answer>(path: string, query: object = {}, call: CallOptions = {}): Promise<Answer> =>
    send('GET', path + queryString(query), call, (response) => response.json() as Promise<Answer>)

  /** What is created or rotated is sent once: it may have happened though the answer was lost. */
  const write = <Data>(method: string, path: string, body: object, call: CallOptions = {}): Promise<Data> =>
    send(method, path, { ...call, body, isSentOnce: method === 'POST' }, dataOf<Data>)

  async function* byCursor<Item>(path: string, query: object = {}, call: CallOptions = {}): AsyncGenerator<Item> {
    let cursor: string | null | undefined
    do {
      const page = await get<CursorPage<Item>>(path, { ...query, limit: 100, cursor }, call)
      yield* page.data
      cursor = page.pagination.next_cursor
    } while (cursor)
  }

  async function* historyOf(prompt: string, query: object = {}, call: CallOptions = {}): AsyncGenerator<HistoryEntry> {
    const seen = new Set<number>()
    for (let number = 1, pages = 1; number <= pages; number += 1) {
      const path = pathOf(prompt, 'history')
      const { data, pagination } = await get<HistoryPage>(path, { ...query, limit: 100, page: number }, call)
      // Entries that are recorded meanwhile move others to later pages.
      yield* data.filter(({ id }) => !seen.has(id))
      for (const { id } of data) seen.add(id)
      pages = pagination.total_pages
    }
  }

  return {
    signals: {
      ...signalsOf(send),
      list: (prompt: string, query?: Filters<'listSignals'> & MetadataFilters, call?: CallOptions) =>
        byCursor<Signal>(pathOf(prompt), query, call),
      /** Every signal of a prompt, or of the organisation. A connection that breaks is resumed. */
      export: (
        prompt: string | undefined,
        query: Omit<Query<'exportSignals'>, 'format'> = {},
        call: CallOptions = {},
      ): AsyncGenerator<ExportedSignal> =>
        readExport(
          (after) => {
            const path = prompt === undefined ? '/signals/export' : `${pathOf(prompt)}/export`
            return send('GET', path + queryString({ ...query, after }), call, (response) => response)
          },
          { ...call, timeoutMs: options.timeoutMs ?? defaultTimeoutMs, after: query.after },
        ),
    },
    history: {
      list: (prompt: string, query?: Filters<'getPromptHistory'>, call?: CallOptions) => historyOf(prompt, query, call),
    },
    stats: (prompt: string, query?: Query<'getSignalStats'>, call?: CallOptions) =>
      get<SignalStats>(pathOf(prompt, 'stats'), query, call),
    impact: (prompt: string, query?: Query<'getPromptImpact'>, call?: CallOptions) =>
      get<ImpactPage>(pathOf(prompt, 'impact'), query, call),
    /** Compares two commits that run side by side. */
    compare: async (prompt: string, query: Query<'comparePrompt'>, call?: CallOptions) =>
      (await get<{ data: SideBySide }>(pathOf(prompt, 'compare'), query, call)).data,
    usage: async (call?: CallOptions) => (await get<{ data: Usage }>('/usage', {}, call)).data,
    prompts: {
      list: (query?: Filters<'listPrompts'>, call?: CallOptions) => byCursor<Prompt>('/prompts', query, call),
      get: async (prompt: string, call?: CallOptions) =>
        (await get<{ data: Prompt }>(at('prompts', prompt), {}, call)).data,
      create: (prompt: NewPrompt, call?: CallOptions) => write<Prompt>('POST', '/prompts', prompt, call),
      update: (prompt: string, change: PromptChange, call?: CallOptions) =>
        write<Prompt>('PATCH', at('prompts', prompt), change, call),
    },
    keys: {
      list: (call?: CallOptions) => byCursor<ApiKey>('/keys', {}, call),
      get: async (key: string, call?: CallOptions) => (await get<{ data: ApiKey }>(at('keys', key), {}, call)).data,
      create: (key: NewApiKey, call?: CallOptions) => write<CreatedApiKey>('POST', '/keys', key, call),
      update: (key: string, change: ApiKeyChange, call?: CallOptions) =>
        write<ApiKey>('PATCH', at('keys', key), change, call),
      rotate: (key: string, rotation: KeyRotation = {}, call?: CallOptions) =>
        write<CreatedApiKey>('POST', `${at('keys', key)}/rotate`, rotation, call),
      revoke: (key: string, call: CallOptions = {}) => send('DELETE', at('keys', key), call, () => undefined),
    },
  }
}

type CursorPage<Item> = { data: Item[]; pagination: { next_cursor: string | null } }
type HistoryPage = { data: HistoryEntry[]; pagination: { total_pages: number } }

const at = (list: string, id: string): string => `/${list}/${encodeURIComponent(id)}`

function queryString(query: object): string {
  const given = Object.entries(query).filter(([, value]) => value !== undefined && value !== null)
  return given.length === 0 ? '' : `?${new URLSearchParams(Object.fromEntries(given))}`
}
