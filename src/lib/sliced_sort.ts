import { nextTurn } from './turns.ts'

/** Comparisons between two turns of the event loop: a few milliseconds, even of long names. */
const slice = 2_000

/** Sorts without blocking the event loop. Equal items keep their order. */
export async function sortInSlices<T>(items: readonly T[], compare: (a: T, b: T) => number): Promise<T[]> {
  let runs: T[][] = []
  for (let start = 0; start < items.length; start += slice / 10) {
    if (start % slice === 0) await nextTurn()
    runs.push(items.slice(start, start + slice / 10).sort(compare))
  }
  while (runs.length > 1) {
    const merged: T[][] = []
    for (let index = 0; index < runs.length; index += 2) {
      merged.push(await merge(runs[index] as T[], runs[index + 1] ?? [], compare))
    }
    runs = merged
  }
  return runs[0] ?? []
}

async function merge<T>(left: T[], right: T[], compare: (a: T, b: T) => number): Promise<T[]> {
  const merged: T[] = []
  for (let [l, r] = [0, 0]; l < left.length || r < right.length; ) {
    if (merged.length % slice === slice - 1) await nextTurn()
    const isLeft = r === right.length || (l < left.length && compare(left[l] as T, right[r] as T) <= 0)
    merged.push((isLeft ? left[l++] : right[r++]) as T)
  }
  return merged
}
