// Counts in plain numbers, because every request is counted, and renders them in the text format of Prometheus.

type Labels = Record<string, string | number>
type Metric = { name: string; help: string; type: 'counter' | 'gauge' | 'histogram'; lines(): string[] }
type Series = { labels: Labels; counts: number[]; sum: number; count: number }

const line = (name: string, labels: Labels, value: number): string => {
  // No value of a label needs escaping: clients choose none of them.
  const pairs = Object.entries(labels).map(([label, text]) => `${label}="${text}"`)
  return `${name}${pairs.length > 0 ? `{${pairs.join(',')}}` : ''} ${value}`
}

/** Default metrics of V8, which are zero or wrong on this engine. */
const meaningless = /^nodejs_(heap_space|active_|version_info|gc_)/

/** Memory, processor time, open files and event loop. Called by the first scrape: the library would slow the start. */
async function createProcessMetrics(): Promise<() => Promise<string>> {
  const { collectDefaultMetrics, Registry } = await import('prom-client')
  const register = new Registry()
  collectDefaultMetrics({ register })
  for (const { name } of register.getMetricsAsArray()) if (meaningless.test(name)) register.removeSingleMetric(name)
  // The library samples the event loop's lag from now on, and has no values for the first turns.
  await new Promise((resolve) => setTimeout(resolve, 50))
  return () => register.metrics()
}

export function createRegistry(prefix: string) {
  const metrics: Metric[] = []
  let processMetrics: ReturnType<typeof createProcessMetrics> | undefined

  /** A metric whose values are read at each scrape. */
  function measure(type: 'gauge' | 'counter', name: string, help: string, read: () => number | [Labels, number][]) {
    const fullName = prefix + name
    const lines = () => {
      const values = read()
      const series: [Labels, number][] = typeof values === 'number' ? [[{}, values]] : values
      return series.map(([labels, value]) => line(fullName, labels, value))
    }
    metrics.push({ name: fullName, help, type, lines })
  }

  return {
    measure,
    gauge(name: string, help: string): (value: number) => void {
      let current = 0
      measure('gauge', name, help, () => current)
      return (value) => {
        current = value
      }
    },
    counter(name: string, help: string): () => void {
      let count = 0
      measure('counter', name, help, () => count)
      return () => {
        count += 1
      }
    },
    /** Exposes every value of the label from the start, so that a rate is right from the first event on. */
    labelledCounter<Value extends string>(name: string, help: string, label: string, values: Value[]) {
      const counts = Object.fromEntries(values.map((value) => [value, 0])) as Record<Value, number>
      measure('counter', name, help, () => values.map((value) => [{ [label]: value }, counts[value]]))
      return (value: Value) => {
        counts[value] += 1
      }
    },
    histogram(name: string, help: string, bounds: number[]) {
      const all = new Map<string, Series>()
      function addSeries(id: string, labels: Labels): Series {
        const series = { labels, counts: Array(bounds.length + 1).fill(0), sum: 0, count: 0 }
        all.set(id, series)
        return series
      }
      const linesOf = ({ labels, counts, sum, count }: Series) => {
        let total = 0
        const buckets = [...bounds, '+Inf'].map((le, index) => {
          total += counts[index] as number
          return line(`${prefix}${name}_bucket`, { ...labels, le }, total)
        })
        return [...buckets, line(`${prefix}${name}_sum`, labels, sum), line(`${prefix}${name}_count`, labels, count)]
      }
      metrics.push({ name: prefix + name, help, type: 'histogram', lines: () => [...all.values()].flatMap(linesOf) })
      return {
        addSeries,
        /** The id stands for the labels, which are built only for the first value of a series. */
        observe(id: string, value: number, labels: () => Labels): void {
          const series = all.get(id) ?? addSeries(id, labels())
          let bucket = 0
          while (bucket < bounds.length && value > (bounds[bucket] as number)) bucket += 1
          series.counts[bucket] = (series.counts[bucket] as number) + 1
          series.sum += value
          series.count += 1
        },
      }
    },
    async text(): Promise<string> {
      processMetrics ??= createProcessMetrics()
      const texts = metrics.map(({ name, help, type, lines }) =>
        [`# HELP ${name} ${help}`, `# TYPE ${name} ${type}`, ...lines()].join('\n'),
      )
      return [...texts, await (await processMetrics)()].join('\n\n')
    },
  }
}
