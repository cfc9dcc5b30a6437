// The one place that knows Prometheus, loaded when somebody asks for the metrics.
import { collectDefaultMetrics, type Metric, Registry } from 'prom-client'

export type Sample = { figure?: 'bucket' | 'sum' | 'count'; labels: Record<string, string | number>; value: number }

/** Something that is counted or measured, as it stands whenever it is asked. */
export type Figure = { name: string; help: string; type: 'counter' | 'gauge' | 'histogram'; samples(): Sample[] }

/** Of Node's engine: on this one they are zero, or say the version of something that is not here. */
const meaningless = /^nodejs_(heap_space|active_|version_info|gc_)/

/** Says the figures, and those of the process itself, in the format of Prometheus. */
export async function createExposition(figures: Figure[]): Promise<() => Promise<string>> {
  const register = new Registry()
  collectDefaultMetrics({ register })
  for (const { name } of register.getMetricsAsArray()) if (meaningless.test(name)) register.removeSingleMetric(name)
  for (const { name, help, type, samples } of figures) {
    const get = async () => ({
      ...{ name, help, type, aggregator: 'sum' },
      values: samples().map(({ figure, ...sample }) => ({ ...sample, metricName: figure && `${name}_${figure}` })),
    })
    // The library's types know only its own classes; all it does with them here is to call `get`.
    register.registerMetric({ name, help, type, get } as unknown as Metric)
  }
  // It has begun to watch the event loop, of which there is nothing to say before it has turned some times.
  await new Promise((resolve) => setTimeout(resolve, 50))
  return () => register.metrics()
}
