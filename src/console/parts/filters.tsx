// What narrows a list down. It is kept in the address, so that the page can be reloaded and shared.
import { useEffect, useRef, useState } from 'preact/hooks'
import { changeQuery, usePlace } from '../client/router.ts'
import { Input, Select } from './field.tsx'

/** Other filters start at the first page. */
export const filter = (change: Record<string, string | undefined>): void =>
  changeQuery({ ...change, cursor: undefined, page: undefined })

/** The option that the address names; the one with the empty value, if it names none. */
export function useChoice<Value extends string>(name: string, options: Record<Value, string>): Value {
  const given = usePlace().query.get(name) ?? ''
  return (Object.hasOwn(options, given) ? given : '') as Value
}

type FilterProps = { label: string; name: string }

export const Choice = ({ label, name, options }: FilterProps & { options: Record<string, string> }) => (
  <Select
    label={label}
    value={useChoice(name, options)}
    options={Object.entries(options)}
    onChange={(value) => filter({ [name]: value })}
  />
)

export const TextFilter = ({ label, name, maxLength = 200 }: FilterProps & { maxLength?: number }) => (
  <Input
    label={label}
    type="search"
    maxLength={maxLength}
    defaultValue={usePlace().query.get(name) ?? ''}
    onTyped={(text) => filter({ [name]: text.trim() })}
  />
)

/** How long to wait for further typing before a search. */
const typingMs = 250

/** The search text of a list, which is sent while it is typed. */
export function Search({ label = 'Search' }: { label?: string }) {
  const search = usePlace().query.get('find') ?? ''
  const [typed, setTyped] = useState(search)
  const sent = useRef(search)
  useEffect(() => {
    const find = typed.trim()
    if (find === search) return
    const timer = setTimeout(() => {
      sent.current = find
      filter({ find })
    }, typingMs)
    return () => clearTimeout(timer)
  }, [typed])
  // A link or the back button led to another search.
  useEffect(() => {
    if (search === sent.current) return
    sent.current = search
    setTyped(search)
  }, [search])
  return <Input label={label} type="search" maxLength={200} value={typed} onTyping={setTyped} />
}
