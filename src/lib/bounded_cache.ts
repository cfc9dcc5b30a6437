/** A least-recently-used cache. */
export class BoundedCache<Key, Value> {
  readonly #entries = new Map<Key, Value>()
  #size = 0

  constructor(
    readonly maxSize: number,
    private readonly sizeOf: (value: Value, key: Key) => number = () => 1,
  ) {}

  get size(): number {
    return this.#size
  }

  /** Skips LRU bookkeeping until the cache is half full. */
  get(key: Key, isOrdered = this.#size > this.maxSize / 2): Value | undefined {
    const value = this.#entries.get(key)
    if (value === undefined || !isOrdered) return value
    // A map iterates in the order of insertion, so this makes the entry the newest.
    this.#entries.delete(key)
    this.#entries.set(key, value)
    return value
  }

  set(key: Key, value: Value): void {
    this.delete(key)
    this.#entries.set(key, value)
    this.#size += this.sizeOf(value, key)
    while (this.#size > this.maxSize) this.evictOldest()
  }

  delete(key: Key): void {
    const value = this.#entries.get(key)
    if (value === undefined) return
    this.#entries.delete(key)
    this.#size -= this.sizeOf(value, key)
  }

  evictOldest(): void {
    const oldest = this.#entries.keys().next()
    if (!oldest.done) this.delete(oldest.value)
  }
}
