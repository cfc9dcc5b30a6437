import type { Schemas } from '../client/api.ts'
import { href } from '../client/router.ts'
import { countOf } from '../parts/format.ts'
import { Text } from '../parts/text.tsx'
import type { Range } from './ranges.ts'

/** The field of the metadata in which the button for web pages sends what was chosen. */
export const reasonsField = 'reasons'

const mostReasons = 8

type ReasonsProps = { prompt: string; range: Range; split: Schemas['MetadataSplit'] | undefined }

/** Why people were unhappy: the reasons of negative signals, each with a link to these signals. Nothing without any. */
export function Reasons({ prompt, range: { since, until }, split }: ReasonsProps) {
  const values = split?.values ?? []
  const reasons = values.filter(({ negative }) => negative > 0).sort((a, b) => b.negative - a.negative)
  const [first] = reasons
  if (!split || !first) return null
  const signalsOf = (reason: string) => {
    const filters = { value: 'negative', since: since.toISOString(), ...(until && { until: until.toISOString() }) }
    return href(`/signals?${new URLSearchParams({ prompt, ...filters, [`metadata.${reasonsField}`]: reason })}`)
  }
  return (
    <section>
      <h2>Why people were unhappy</h2>
      {!split.complete && <p class="muted">Of the newest {countOf(split.signals, 'signal')} in this range.</p>}
      <ul class="reasons">
        {reasons.slice(0, mostReasons).map(({ value, negative }) => (
          <li key={value}>
            <a class="clamp" href={signalsOf(value)}>
              <Text>{value}</Text>
            </a>
            <meter high={0} optimum={0} max={first.negative} value={negative} aria-hidden="true" />
            <span class="figure">{countOf(negative, 'signal')}</span>
          </li>
        ))}
      </ul>
    </section>
  )
}
