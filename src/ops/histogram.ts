type Labels = Record<string, string | number>
type Series = { labels: Labels; counts: number[]; sum: number; count: number }

/** A sample as Prometheus has it: `bucket` with its upper bound in `le`, `sum` or `count`. */
type HistogramSample = { suffix: 'bucket' | 'sum' | 'count'; labels: Labels; value: number }

/** A histogram of several series, cheap enough to observe every request. */
export class Histogram {
  readonly #series = new Map<string, Series>()

  constructor(readonly bounds: number[]) {}

  /** Adds a series that is exposed before its first value. */
  addSeries(name: string, labels: Labels): Series {
    const series = { labels, counts: Array(this.bounds.length + 1).fill(0), sum: 0, count: 0 }
    this.#series.set(name, series)
    return series
  }

  /** The name is looked up at every call and stands for the labels, which are built for the first one only. */
  observe(name: string, value: number, labels: () => Labels): void {
    const series = this.#series.get(name) ?? this.addSeries(name, labels())
    let bucket = 0
    while (bucket < this.bounds.length && value > (this.bounds[bucket] as number)) bucket += 1
    series.counts[bucket] = (series.counts[bucket] as number) + 1
    series.sum += value
    series.count += 1
  }

  samples(): HistogramSample[] {
    return [...this.#series.values()].flatMap(({ labels, counts, sum, count }) => {
      let total = 0
      const buckets = [...this.bounds, '+Inf'].map((le, index) => {
        total += counts[index] as number
        return { suffix: 'bucket' as const, labels: { ...labels, le }, value: total }
      })
      return [...buckets, { suffix: 'sum', labels, value: sum }, { suffix: 'count', labels, value: count }]
    })
  }
}
