/** What a key may do, as `resource:action`. Permission to write does not include permission to read. */
export const scopes = [
  'history:read',
  'history:write',
  'history:delete',
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
