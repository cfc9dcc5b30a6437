// Memory, processor time, open files and event loop. Loaded with the first scrape: the library would slow the start.
import { collectDefaultMetrics, Registry } from 'prom-client'

/** Default metrics of V8, which are zero or wrong on this engine. */
const meaningless = /^nodejs_(heap_space|active_|version_info|gc_)/

export async function createProcessMetrics(): Promise<() => Promise<string>> {
  const register = new Registry()
  collectDefaultMetrics({ register })
  for (const { name } of register.getMetricsAsArray()) if (meaningless.test(name)) register.removeSingleMetric(name)
  // The library samples the event loop's lag from now on, and has no values for the first turns.
  await new Promise((resolve) => setTimeout(resolve, 50))
  return () => register.metrics()
}
