// Counts in plain numbers, because every request is counted, and renders them in the text format of Prometheus.
import { existsSync, readdirSync } from 'node:fs'
import { monitorEventLoopDelay } from 'node:perf_hooks'

type Labels = Record<string, string | number>
type Metric = { name: string; help: string; type: 'counter' | 'gauge' | 'histogram'; lines(): string[] }
type Series = { labels: Labels; counts: number[]; sum: number; count: number }

const line = (name: string, labels: Labels, value: number): string => {
  // No value of a label needs escaping: clients choose none of them.
  const pairs = Object.entries(labels).map(([label, text]) => `${label}="${text}"`)
  return `${name}${pairs.length > 0 ? `{${pairs.join(',')}}` : ''} ${value}`
}

/** A metric whose values are read at each scrape. */
function measured(
  type: 'gauge' | 'counter',
  name: string,
  help: string,
  read: () => number | [Labels, number][],
): Metric {
  const lines = () => {
    const values = read()
    const series: [Labels, number][] = typeof values === 'number' ? [[{}, values]] : values
    return series.map(([labels, value]) => line(name, labels, value))
  }
  return { name, help, type, lines }
}

const openFiles = '/proc/self/fd'

/** The process itself, under the names that other services use. Watches the event loop from the first scrape on. */
function measureProcess(): Metric[] {
  const delays = monitorEventLoopDelay({ resolution: 10 })
  delays.enable()
  return [
    measured('counter', 'process_cpu_seconds_total', 'User and system CPU time', () => {
      const { user, system } = process.cpuUsage()
      return (user + system) / 1e6
    }),
    measured('gauge', 'process_resident_memory_bytes', 'Resident memory', () => process.memoryUsage.rss()),
    measured('gauge', 'process_open_fds', 'Open file descriptors; 0 where the system does not say', () =>
      existsSync(openFiles) ? readdirSync(openFiles).length : 0,
    ),
    measured('gauge', 'process_start_time_seconds', 'Start of the process', () => performance.timeOrigin / 1_000),
    measured('gauge', 'nodejs_eventloop_lag_p99_seconds', 'Delay of the event loop since the last scrape', () => {
      const seconds = (delays.percentile(99) || 0) / 1e9
      delays.reset()
      return seconds
    }),
  ]
}

export function createRegistry(prefix: string) {
  const metrics: Metric[] = []
  let ofProcess: Metric[] | undefined

  function measure(type: 'gauge' | 'counter', name: string, help: string, read: () => number | [Labels, number][]) {
    metrics.push(measured(type, prefix + name, help, read))
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
    text(): string {
      ofProcess ??= measureProcess()
      return [...metrics, ...ofProcess]
        .map(({ name, help, type, lines }) => `# HELP ${name} ${help}\n# TYPE ${name} ${type}\n${lines().join('\n')}\n`)
        .join('\n')
    },
  }
}
