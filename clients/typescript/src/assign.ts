export interface Experiment {
  base: string
  head: string
  /** The share of sessions that get the head, from 0 to 1; half by default. */
  share?: number
}

/**
 * The commit that a session gets in a side-by-side comparison: always the same one, on every platform. A larger share moves
 * sessions from the base to the head, and none back.
 */
export function assign(session: string, { base, head, share = 0.5 }: Experiment): string {
  let hash = 0x811c9dc5
  // FNV-1a. The commits are part of it, so that two experiments divide the sessions differently.
  for (const byte of new TextEncoder().encode(`${base} ${head} ${session}`)) {
    hash = Math.imul(hash ^ byte, 0x01000193)
  }
  // The last step of MurmurHash3: without it similar names fall on the same side.
  hash = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b)
  hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2ae35)
  hash ^= hash >>> 16
  return (hash >>> 0) / 2 ** 32 < share ? head : base
}
