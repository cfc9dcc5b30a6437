import { prefetch } from '../client/query.ts'
import { queryWith } from '../client/router.ts'

type PagerProps = {
  isFirst: boolean
  next: string | null
  ask(cursor: string): [name: string, ask: () => Promise<unknown>]
  /** The words for the ways; those of a list in the order of time, unless given. */
  words?: { first: string; next: string }
}

/** The ways to the first and the next page of a list. The next one is asked for as soon as somebody reaches for it. */
export function Pager({ isFirst, next, ask, words = { first: 'Newest', next: 'Older' } }: PagerProps) {
  if (isFirst && next === null) return null
  const reach = () => next !== null && prefetch(...ask(next))
  return (
    <nav class="pager" aria-label="Pages">
      {!isFirst && <a href={`${location.pathname}${queryWith({ cursor: undefined })}`}>{words.first}</a>}
      {next !== null && (
        <a href={`${location.pathname}${queryWith({ cursor: next })}`} onPointerEnter={reach} onFocus={reach}>
          {words.next}
        </a>
      )}
    </nav>
  )
}
