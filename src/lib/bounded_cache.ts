/** A least-recently-used cache: when it is full, the entries that were used longest ago are evicted. */
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

  /** The order matters from half of the room on; see monthOf in months.ts for what it takes to keep it. */
  get(key: Key, isOrdered = this.#size > this.maxSize / 2): Value | undefined {
    const value = this.#entries.get(key)
    if (value === undefined || !isOrdered) return value
    // A map keeps its keys in the order of insertion, so the entry becomes the newest.
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

  clear(): void {
    this.#entries.clear()
    this.#size = 0
  }

  delete(key: Key): void {
    const value = this.#entries.get(key)
    if (value === undefined) return
    this.#entries.delete(key)
    this.#size -= this.sizeOf(value, key)
  }

  /** Does nothing when the cache is empty. */
  evictOldest(): void {
    const oldest = this.#entries.keys().next()
    if (!oldest.done) this.delete(oldest.value)
  }
}
