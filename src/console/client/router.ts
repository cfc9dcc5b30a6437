import { useEffect, useReducer } from 'preact/hooks'
import { type ConsolePath, consolePaths } from '../../http/console_paths.ts'

/** The root of the service, at whatever path a proxy mounts it: this script is in its folder `console`. */
export const root = new URL('..', import.meta.url)

/** The href of a path of the service, such as `/signals`. */
export const href = (place: string): string => root.pathname + place.slice(1)

/** A page by its path, and the id of the prompt that its address names, if any. */
type Page = { path: ConsolePath; prompt: string }

function findPage(pathname: string): Page | undefined {
  const place = `/${pathname.slice(root.pathname.length)}`
  for (const path of consolePaths) {
    const match = new RegExp(`^${path.replace(':prompt_id', '([^/]+)')}/?$`).exec(place)
    if (match) return { path, prompt: decode(match[1] ?? '') }
  }
}

function decode(text: string): string {
  try {
    return decodeURIComponent(text)
  } catch {
    return text
  }
}

/** Where the reader is: the page, if there is one, and the query of its address. */
export function usePlace(): { page: Page | undefined; query: URLSearchParams } {
  const [, redraw] = useReducer((count: number) => count + 1, 0)
  useEffect(() => {
    addEventListener('popstate', redraw)
    return () => removeEventListener('popstate', redraw)
  }, [])
  return { page: findPage(location.pathname), query: new URLSearchParams(location.search) }
}

/** Browsers send this event only for ways that they went by themselves, back and forward. */
const announce = () => dispatchEvent(new PopStateEvent('popstate'))

type QueryChange = Record<string, string | undefined>

/** Changes the query of this page, for filters. Leaves out empty values. Adds no history entry. */
export function changeQuery(change: QueryChange): void {
  history.replaceState(null, '', hrefWith(change))
  announce()
}

/** The address of this page with a change of its query. */
export function hrefWith(change: QueryChange): string {
  const query = new URLSearchParams(location.search)
  for (const [name, value] of Object.entries(change)) {
    if (value) query.set(name, value)
    else query.delete(name)
  }
  return location.pathname + (query.size > 0 ? `?${query}` : '')
}

/** Links within the console change the page without loading it again; the reader's own ways of opening them stay. */
export function listenToLinks(): void {
  addEventListener('click', (event) => {
    const link = (event.target as Element | null)?.closest?.('a')
    const isPlain = event.button === 0 && !event.metaKey && !event.ctrlKey && !event.shiftKey && !event.altKey
    if (!link || !isPlain || event.defaultPrevented || link.target || link.hash) return
    if (link.origin !== location.origin || !findPage(link.pathname)) return
    event.preventDefault()
    history.pushState(null, '', link.href)
    announce()
    scrollTo(0, 0)
  })
}
