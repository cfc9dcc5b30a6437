import type { ComponentChildren } from 'preact'
import { useEffect, useRef } from 'preact/hooks'
import { useOwnKey } from '../client/own_key.ts'
import { usePlace } from '../client/router.ts'

type PageProps = { title: string; actions?: ComponentChildren; children: ComponentChildren }

let hasShownOne = false

/** A page with its heading. When it is opened from another one, a reader who does not see it is taken to its heading. */
export function Page({ title, actions, children }: PageProps) {
  const heading = useRef<HTMLHeadingElement>(null)
  const organisation = useOwnKey().data?.data.organisation.name
  const { path, params } = usePlace()
  useEffect(() => {
    document.title = [title, organisation, 'prompt-signals'].filter(Boolean).join(' · ')
  }, [title, organisation])
  useEffect(() => {
    if (hasShownOne) heading.current?.focus({ preventScroll: true })
    hasShownOne = true
  }, [path, JSON.stringify(params)])
  return (
    <>
      <div class="page-head">
        <h1 ref={heading} tabIndex={-1}>
          <bdi class="text">{title}</bdi>
        </h1>
        {actions && <div class="actions">{actions}</div>}
      </div>
      {children}
    </>
  )
}
