import type { ComponentChildren } from 'preact'
import { formatDistance, formatMoment } from './format.ts'

/** A text that somebody else wrote. Its direction is its own, and it breaks where it must. */
export const Text = ({ children }: { children: string }) => <bdi class="text">{children}</bdi>

export const Code = ({ children }: { children: string }) => <code class="text">{children}</code>

/** How long ago or ahead, with the exact time on demand. */
export const When = ({ time }: { time: string }) => (
  <time dateTime={time} title={formatMoment(time)}>
    {formatDistance(time)}
  </time>
)

/** A link that somebody else wrote, where it leads to the web; else its text alone. */
export const OuterLink = ({ to, children }: { to: string | null; children: ComponentChildren }) =>
  to !== null && /^https?:\/\//i.test(to) ? (
    <a href={to} rel="noreferrer" target="_blank">
      {children}
    </a>
  ) : (
    <span>{children}</span>
  )
