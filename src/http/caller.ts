/** What a key may do, as `resource:action`. Permission to write does not include permission to read. */
export const scopes = [
  'history:read',
  'history:write',
  'signals:read',
  'signals:write',
  'signals:delete',
  'prompts:read',
  'prompts:write',
  'usage:read',
  'keys:read',
  'keys:write',
  'webhooks:write',
] as const

export type Scope = (typeof scopes)[number]

export type Caller = {
  id: number
  organisationId: number
  /** Public ids. */
  org: string
  key: string
  scopes: Scope[]
  /** Null unless it is a browser key. */
  browser: {
    origins: string[]
    prompts: string[] | null
    monthlyLimit: number | null
    /** The key itself, or the first key of the rotations that led to it. */
    countedWith: number
  } | null
}

/**
 * Turns the Authorization header into the caller; throws or rejects with `unauthorized`. A cached key is returned without
 * a promise: an extra turn of the event loop per request costs throughput.
 */
export type KeyVerifier = (authorization: string | null) => Caller | Promise<Caller>
