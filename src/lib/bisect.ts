/** The index of the first item for which this is true; it is true for all that follow. */
export function firstIndex<T>(items: readonly T[], isTrue: (item: T) => boolean): number {
  let [low, high] = [0, items.length]
  while (low < high) {
    const middle = (low + high) >>> 1
    if (isTrue(items[middle] as T)) high = middle
    else low = middle + 1
  }
  return low
}
