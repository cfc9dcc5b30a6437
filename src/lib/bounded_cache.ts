/** A map that forgets its least recently used entries when it is full. */
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

  get(key: Key): Value | undefined {
    const value = this.#entries.get(key)
    // With plenty of room nothing is about to be forgotten, and their order is of no interest.
    if (value !== undefined && this.#size > this.maxSize / 2) {
      this.#entries.delete(key)
      this.#entries.set(key, value)
    }
    return value
  }

  set(key: Key, value: Value): void {
    this.delete(key)
    this.#entries.set(key, value)
    this.#size += this.sizeOf(value, key)
    for (const oldest of this.#entries.keys()) {
      if (this.#size <= this.maxSize) break
      this.delete(oldest)
    }
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
}
