import type { ComponentChildren } from 'preact'
import { href } from '../client/router.ts'
import { formatDistance, formatMoment } from './format.ts'

/** Marks that turn what follows around, and that reach beyond a `bdi` when they are not closed. */
const turningMarks = /[\u202A-\u202E\u2066-\u2069]/g

/** A text that somebody else wrote. Its direction is its own, and it breaks where it must. */
export const Text = ({ children }: { children: string }) => <bdi class="text">{children.replace(turningMarks, '')}</bdi>

/** A sentence of ours, whatever names are in it. A figure stays on one line with its percent sign. */
export const Ours = ({ children }: { children: string }) => (
  <bdi class="text" dir="ltr">
    {children.replace(turningMarks, '').replace(/ %/g, '\u00a0%')}
  </bdi>
)

type NamedProps = { name: ComponentChildren; detail: ComponentChildren }

/** What somebody looks for, and a line below it that says more, if there is more to say. */
export const Named = ({ name, detail }: NamedProps) => (
  <>
    {name}
    {detail && <span class="detail">{detail}</span>}
  </>
)

export const Code = ({ children }: { children: string }) => (
  <code>
    <Text>{children}</Text>
  </code>
)

/** An id of the service, which is short and is not broken over lines. */
export const Id = ({ children }: { children: string }) => <code class="id">{children}</code>

export const Scopes = ({ scopes }: { scopes: string[] }) => (
  <span class="row scopes">
    {scopes.map((scope) => (
      <code key={scope}>{scope}</code>
    ))}
  </span>
)

/** What is to be typed at a terminal. A line does not end within the name of an option. */
export const Command = ({ children }: { children: string }) => (
  <pre>
    <code>
      {children.split(/(--[\w-]+)/).map((part) => (part.startsWith('--') ? <span class="option">{part}</span> : part))}
    </code>
  </pre>
)

/** How long ago or ahead, with the exact time on demand. */
export const When = ({ time }: { time: string }) => (
  <time dateTime={time} title={formatMoment(time)}>
    {formatDistance(time)}
  </time>
)

export const Moment = ({ time }: { time: string }) => <time dateTime={time}>{formatMoment(time)}</time>

export const hrefOfPrompt = (id: string): string => href(`/prompts/${encodeURIComponent(id)}`)

/** The page of a change. */
export const hrefOfChange = (prompt: string, id: number): string => `${hrefOfPrompt(prompt)}?change=${id}`

export const PromptLink = ({ id, name }: { id: string; name: string }) => (
  <a href={hrefOfPrompt(id)}>
    <Text>{name}</Text>
  </a>
)

/** A link from user data. Without `href`, so plain text, unless it leads to the web. */
export const OuterLink = ({ to, children }: { to: string | null; children: ComponentChildren }) => (
  <a {...(to !== null && /^https?:\/\//i.test(to) && { href: to })} rel="noreferrer" target="_blank">
    {children}
  </a>
)

type LimitMeterProps = { used: number; limit: number; label: string; class?: string }

/** How much of a limit is used. A limit of nothing is used up. */
export const LimitMeter = ({ used, limit, label, class: look }: LimitMeterProps) => (
  <meter
    class={look}
    min={0}
    max={Math.max(limit, 1)}
    high={limit * 0.9}
    optimum={0}
    value={limit === 0 ? 1 : used}
    aria-label={label}
  />
)
