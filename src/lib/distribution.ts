type Labels = Record<string, string | number>
type Series = { labels: Labels; counts: number[]; sum: number; count: number }

/** A figure of a histogram, as Prometheus has it: `bucket` with its upper end in `le`, `sum` or `count`. */
export type DistributionSample = { figure: 'bucket' | 'sum' | 'count'; labels: Labels; value: number }

/** How large things of a few kinds are: so cheap to add to that it can be done for every request. */
export class Distribution {
  readonly #series = new Map<string, Series>()

  constructor(readonly bounds: number[]) {}

  /** A kind that is shown before there is anything of it. */
  begin(kind: string, labels: Labels): Series {
    const series = { labels, counts: Array(this.bounds.length + 1).fill(0), sum: 0, count: 0 }
    this.#series.set(kind, series)
    return series
  }

  /** The kind names the labels: it is looked up at every call, they are asked for at the first one. */
  add(kind: string, value: number, labels: () => Labels): void {
    const series = this.#series.get(kind) ?? this.begin(kind, labels())
    let bucket = 0
    while (bucket < this.bounds.length && value > (this.bounds[bucket] as number)) bucket += 1
    series.counts[bucket] = (series.counts[bucket] as number) + 1
    series.sum += value
    series.count += 1
  }

  samples(): DistributionSample[] {
    return [...this.#series.values()].flatMap(({ labels, counts, sum, count }) => {
      let total = 0
      const buckets = [...this.bounds, '+Inf'].map((le, index) => {
        total += counts[index] as number
        return { figure: 'bucket' as const, labels: { ...labels, le }, value: total }
      })
      return [...buckets, { figure: 'sum', labels, value: sum }, { figure: 'count', labels, value: count }]
    })
  }
}
