import { BoundedCache } from '../lib/bounded_cache.ts'

/**
 * An LRU cache that owners share. One owner may fill it while no other needs it. Once it is full, only owners above an
 * equal share lose entries, so that a busy owner never evicts what another holds within its share.
 */
export class SharedCache<Owner, Key, Value> {
  readonly #owned = new Map<Owner, BoundedCache<Key, Value>>()
  #size = 0

  constructor(
    readonly maxSize: number,
    private readonly sizeOf: (value: Value, key: Key) => number,
  ) {}

  get size(): number {
    return this.#size
  }

  get(owner: Owner, key: Key): Value | undefined {
    return this.#owned.get(owner)?.get(key, this.#size > this.maxSize / 2)
  }

  set(owner: Owner, key: Key, value: Value): void {
    const own = this.#owned.get(owner) ?? new BoundedCache<Key, Value>(Number.POSITIVE_INFINITY, this.sizeOf)
    this.#owned.set(owner, own)
    this.#resize(own, () => own.set(key, value))
    if (this.#size > this.maxSize) this.#evict()
  }

  #evict(): void {
    // Evicting several pages together keeps scans of all owners rare.
    const room = this.maxSize * (15 / 16)
    const share = room / this.#owned.size
    for (const [owner, own] of this.#owned) {
      while (this.#size > room && own.size > share) this.#resize(own, () => own.evictOldest())
      if (own.size === 0) this.#owned.delete(owner)
    }
  }

  #resize(own: BoundedCache<Key, Value>, change: () => void): void {
    this.#size -= own.size
    change()
    this.#size += own.size
  }
}
