import { useEffect, useRef } from 'preact/hooks'
import type { OwnKey } from '../client/api.ts'
import type { Holder } from '../client/use_session.ts'
import { Button } from '../parts/button.tsx'
import { Code, Text } from '../parts/text.tsx'

type SwitchProps = { held: Holder; offered: Holder; onChoose(key: string): void }

/** Asks before a link replaces the organisation that is signed in. Names may be equal, so the ids are shown too. */
export function Switch({ held, offered, onChoose }: SwitchProps) {
  const heading = useRef<HTMLHeadingElement>(null)
  useEffect(() => {
    document.title = 'Switch organisation? · prompt-signals'
    heading.current?.focus()
  }, [])
  return (
    <main class="sign-in">
      <h1 ref={heading} tabIndex={-1}>
        Switch organisation?
      </h1>
      <dl>
        <dt>You are signed in to</dt>
        <Name organisation={held.organisation} />
        <dt>This link signs in to</dt>
        <Name organisation={offered.organisation} />
      </dl>
      <p>Switch only if you trust the sender of the link, who can see what you do there.</p>
      <div class="row">
        <Button look="primary" does={`Stay in ${held.organisation.name}`} onClick={() => onChoose(held.key)} />
        <Button does={`Switch to ${offered.organisation.name}`} onClick={() => onChoose(offered.key)} />
      </div>
    </main>
  )
}

const Name = ({ organisation: { id, name } }: { organisation: OwnKey['organisation'] }) => (
  <dd>
    <strong>
      <Text>{name}</Text>
    </strong>
    <span class="detail">
      <Code>{id}</Code>
    </span>
  </dd>
)
