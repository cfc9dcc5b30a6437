/** A map that forgets its least recently used entry when it is full. */
export class BoundedCache<Key, Value> {
  readonly #entries = new Map<Key, Value>()

  constructor(readonly maxEntries: number) {}

  get(key: Key): Value | undefined {
    const value = this.#entries.get(key)
    if (value !== undefined) {
      this.#entries.delete(key)
      this.#entries.set(key, value)
    }
    return value
  }

  set(key: Key, value: Value): void {
    this.#entries.delete(key)
    this.#entries.set(key, value)
    if (this.#entries.size > this.maxEntries) {
      this.#entries.delete(this.#entries.keys().next().value as Key)
    }
  }

  delete(key: Key): void {
    this.#entries.delete(key)
  }
}
