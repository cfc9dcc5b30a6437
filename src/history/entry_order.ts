// Entries in the order of time. A client may report any number of one commit, so they are searched by bisection.
import { firstIndex } from '../lib/bisect.ts'
import { commitKey } from './commit_names.ts'
import { comparePlaces, type KnownEntry, type LiveEntry } from './identity.ts'

/** Entries by a key, oldest first. */
export class OrderedEntries {
  readonly #byKey = new Map<string, KnownEntry[]>()

  constructor(private readonly keyOf: (entry: KnownEntry) => string) {}

  of(key: string): readonly KnownEntry[] {
    return this.#byKey.get(key) ?? []
  }

  add(entry: KnownEntry): void {
    const key = this.keyOf(entry)
    const entries = this.#byKey.get(key)
    if (entries) entries.splice(placeOf(entry, entries), 0, entry)
    else this.#byKey.set(key, [entry])
  }

  delete(entry: KnownEntry): void {
    const entries = this.#byKey.get(this.keyOf(entry)) ?? []
    const index = placeOf(entry, entries)
    if (entries[index]?.id === entry.id) entries.splice(index, 1)
  }
}

const placeOf = (entry: KnownEntry, entries: readonly KnownEntry[]): number =>
  firstIndex(entries, (one) => comparePlaces(one, entry) >= 0)

/** What went live on one branch. */
export class LiveOrder {
  readonly #live: LiveEntry[]
  readonly #keys: string[]
  /** The index of the next entry of another commit. */
  readonly #nextOther: number[]

  constructor(live: LiveEntry[]) {
    this.#live = live.toSorted(comparePlaces)
    this.#keys = this.#live.map(({ commit_sha }) => commitKey(commit_sha))
    this.#nextOther = this.#keys.map((_, index) => index + 1)
    for (let index = this.#keys.length - 2; index >= 0; index -= 1) {
      const isSame = this.#keys[index] === this.#keys[index + 1]
      if (isSame) this.#nextOther[index] = this.#nextOther[index + 1] as number
    }
  }

  /** Finds the oldest of these entries of one commit, oldest first, with no other commit live between it and the entry. */
  findUnparted(entry: LiveEntry, candidates: readonly KnownEntry[]): KnownEntry | undefined {
    const isNear = (one: KnownEntry) => comparePlaces(one, entry) > 0 || !this.#isOtherBetween(one, entry)
    const nearest = candidates[firstIndex(candidates, isNear)]
    return nearest && !this.#isOtherBetween(entry, nearest) ? nearest : undefined
  }

  /** Whether another commit went live between two entries of a commit, so that the later one is a rollback. */
  #isOtherBetween(one: LiveEntry, other: LiveEntry): boolean {
    // A retry has the same time.
    if (Number(one.created_at) === Number(other.created_at)) return false
    const [first, last] = comparePlaces(one, other) < 0 ? [one, other] : [other, one]
    const next = firstIndex(this.#live, (entry) => comparePlaces(entry, first) > 0)
    const isSame = this.#keys[next] === commitKey(one.commit_sha)
    const between = this.#live[isSame ? (this.#nextOther[next] as number) : next]
    return between !== undefined && comparePlaces(between, last) < 0
  }
}
