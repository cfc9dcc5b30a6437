import type { Deadline } from '../lib/deadline.ts'
import type { Scope } from '../lib/scopes.ts'

/** The key of a request, as it was when the key was looked up. */
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

/** Throws or rejects with `unauthorized`. Returns a cached key without a promise, which would cost throughput. */
export type KeyVerifier = (authorization: string | null) => Caller | Promise<Caller>

/** Who makes a change. Without an organisation it may change any; without scopes and an expiry it may grant any. */
export type Actor = {
  name: string
  organisationId?: number
  scopes?: readonly string[]
  expiresAt?: Date | null
  request?: Deadline
}
