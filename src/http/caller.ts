import { forbidden, notFound, ServiceError } from '../errors.ts'
import type { Scope } from '../lib/scopes.ts'

export type Caller = {
  id: number
  organisationId: number
  /** Public ids. */
  org: string
  key: string
  scopes: Scope[]
  /** Null for a key that does not expire. */
  expiresAt: Date | null
  browser: {
    origins: string[]
    prompts: string[] | null
    monthlyLimit: number | null
    /** The key itself, or the first key of the rotations that led to it. */
    countedWith: number
  } | null
}

/** Throws or rejects with `unauthorized`. A promise for a cached key would cost throughput, so there is none. */
export type KeyVerifier = (authorization: string | null) => Caller | Promise<Caller>

/** A handler goes on with the key as it was when the request began, so the key must still have every right of then. */
export function requireNotNarrowed(before: Caller, now: Caller): void {
  const lost = before.scopes.find((scope) => !now.scopes.includes(scope))
  if (lost) throw forbidden(lost)
  if (now.browser && !before.browser) {
    throw new ServiceError('forbidden', 'This API key was restricted meanwhile. Send the request again.')
  }
}

/** A prompt that a browser key is not limited to is answered like one that does not exist. */
export function requirePrompt({ browser }: Caller, params: unknown): void {
  if (!browser?.prompts) return
  const { prompt_id: id } = params as { prompt_id?: string }
  if (id !== undefined && !browser.prompts.includes(id)) throw notFound()
}

/** What a caller sees of a row that it wrote: everything with the scope to read it, else only the named properties. */
export const visibleTo = ({ scopes }: Caller, scope: Scope, row: object, names: string[]): object =>
  scopes.includes(scope) ? row : Object.fromEntries(Object.entries(row).filter(([name]) => names.includes(name)))
