import type { ComponentChildren } from 'preact'
import { useEffect, useRef } from 'preact/hooks'
import { useOwnKey } from '../client/organisation.ts'
import { usePlace } from '../client/router.ts'
import { Text } from './text.tsx'

type PageProps = { title: string; actions?: ComponentChildren; children: ComponentChildren }

let hasShownOne = false

/** A page with its heading. When it is opened from another one, a reader who does not see it is taken to its heading. */
export function Page({ title, actions, children }: PageProps) {
  const heading = useRef<HTMLHeadingElement>(null)
  const organisation = useOwnKey()?.organisation.name
  const { page } = usePlace()
  useEffect(() => {
    document.title = [title, organisation, 'prompt-signals'].filter(Boolean).join(' · ')
  }, [title, organisation])
  useEffect(() => {
    if (hasShownOne) heading.current?.focus({ preventScroll: true })
    hasShownOne = true
  }, [page?.path, page?.prompt])
  return (
    <>
      <div class="row page-head">
        <h1 ref={heading} tabIndex={-1}>
          <Text>{title}</Text>
        </h1>
        {actions && <div class="row actions">{actions}</div>}
      </div>
      {children}
    </>
  )
}
