type Series = { labels: Record<string, string | number>; counts: number[]; sum: number; count: number }

/** A figure of a histogram, as Prometheus has it: `bucket` with its upper end in `le`, `sum` or `count`. */
export type DurationSample = {
  figure: 'bucket' | 'sum' | 'count'
  labels: Record<string, string | number>
  value: number
}

/** How long things of a few kinds took: so cheap to add to that it can be done for every request. */
export class Durations {
  readonly #series = new Map<string, Series>()

  constructor(readonly bounds: number[]) {}

  /** The kind names the labels: it is looked up at every call, they are asked for at the first one. */
  add(kind: string, seconds: number, labels: () => Record<string, string | number>): void {
    const series = this.#series.get(kind) ?? this.#begin(kind, labels())
    let bucket = 0
    while (bucket < this.bounds.length && seconds > (this.bounds[bucket] as number)) bucket += 1
    series.counts[bucket] = (series.counts[bucket] as number) + 1
    series.sum += seconds
    series.count += 1
  }

  samples(): DurationSample[] {
    return [...this.#series.values()].flatMap(({ labels, counts, sum, count }) => {
      let total = 0
      const buckets = [...this.bounds, '+Inf'].map((le, index) => {
        total += counts[index] as number
        return { figure: 'bucket' as const, labels: { ...labels, le }, value: total }
      })
      return [...buckets, { figure: 'sum', labels, value: sum }, { figure: 'count', labels, value: count }]
    })
  }

  #begin(kind: string, labels: Record<string, string | number>): Series {
    const series = { labels, counts: Array(this.bounds.length + 1).fill(0), sum: 0, count: 0 }
    this.#series.set(kind, series)
    return series
  }
}
