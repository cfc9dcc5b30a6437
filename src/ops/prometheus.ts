// The one place that knows prom-client, loaded with the first scrape.
import { collectDefaultMetrics, type Metric as LibraryMetric, Registry } from 'prom-client'

export type Sample = { suffix?: 'bucket' | 'sum' | 'count'; labels: Record<string, string | number>; value: number }

/** A metric whose samples are taken at each scrape. */
export type Metric = { name: string; help: string; type: 'counter' | 'gauge' | 'histogram'; samples(): Sample[] }

/** Default metrics of V8, which are zero or wrong on this engine. */
const meaningless = /^nodejs_(heap_space|active_|version_info|gc_)/

/** Renders the metrics, and those of the process, in the text format of Prometheus. */
export async function createExposition(metrics: Metric[]): Promise<() => Promise<string>> {
  const register = new Registry()
  collectDefaultMetrics({ register })
  for (const { name } of register.getMetricsAsArray()) if (meaningless.test(name)) register.removeSingleMetric(name)
  for (const { name, help, type, samples } of metrics) {
    const get = async () => ({
      ...{ name, help, type, aggregator: 'sum' },
      values: samples().map(({ suffix, ...sample }) => ({ ...sample, metricName: suffix && `${name}_${suffix}` })),
    })
    // The library's types know only its own classes; all it does with them here is to call `get`.
    register.registerMetric({ name, help, type, get } as unknown as LibraryMetric)
  }
  // The library has just begun to sample the event loop's lag, and has no values before some turns of it.
  await new Promise((resolve) => setTimeout(resolve, 50))
  return () => register.metrics()
}
