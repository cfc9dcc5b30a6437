import { useEffect, useReducer } from 'preact/hooks'
import { type ConsolePath, consolePaths } from '../paths.ts'
import { href, root } from './root.ts'

/** Where the reader is: the page, the parts of its address that have names, and its query. */
export type Place = { path: ConsolePath | undefined; params: Record<string, string>; query: URLSearchParams }

const watchers = new Set<() => void>()

function currentPlace(): Place {
  const place = `/${location.pathname.slice(root.pathname.length)}`.replace(/(.)\/$/, '$1')
  const query = new URLSearchParams(location.search)
  for (const path of consolePaths) {
    const pattern = new RegExp(`^${path.replace(/:(\w+)/g, '(?<$1>[^/]+)')}$`)
    const match = pattern.exec(place)
    if (match) return { path, params: decode(match.groups ?? {}), query }
  }
  return { path: undefined, params: {}, query }
}

function decode(params: Record<string, string>): Record<string, string> {
  try {
    return Object.fromEntries(Object.entries(params).map(([name, text]) => [name, decodeURIComponent(text)]))
  } catch {
    return params
  }
}

export function usePlace(): Place {
  const [, redraw] = useReducer((count: number) => count + 1, 0)
  useEffect(() => {
    const watch = () => redraw(undefined)
    watchers.add(watch)
    return () => {
      watchers.delete(watch)
    }
  }, [])
  return currentPlace()
}

const announce = () => {
  for (const watch of watchers) watch()
}

/** Opens a place of the console, as `/signals?value=negative`. */
function navigate(place: string): void {
  history.pushState(null, '', href(place))
  announce()
  scrollTo(0, 0)
}

/** Changes the query of this page, as a filter does; empty values are left out. Going back skips it. */
export function changeQuery(change: Record<string, string | undefined>): void {
  history.replaceState(null, '', `${location.pathname}${queryWith(change)}`)
  announce()
}

/** The query of this page with a change, as `?a=b`; empty when nothing is left. */
export function queryWith(change: Record<string, string | undefined>): string {
  const query = new URLSearchParams(location.search)
  for (const [name, value] of Object.entries(change)) {
    if (value) query.set(name, value)
    else query.delete(name)
  }
  return query.size > 0 ? `?${query}` : ''
}

/** Links within the console change the page without loading it again; the reader's own ways of opening them stay. */
export function listenToLinks(): void {
  addEventListener('popstate', announce)
  addEventListener('click', (event) => {
    const link = (event.target as Element | null)?.closest?.('a')
    const isPlain = event.button === 0 && !event.metaKey && !event.ctrlKey && !event.shiftKey && !event.altKey
    if (!link || !isPlain || event.defaultPrevented || link.target || link.origin !== location.origin) return
    const place = `/${link.pathname.slice(root.pathname.length)}`
    const isOurs = consolePaths.some((path) => new RegExp(`^${path.replace(/:\w+/g, '[^/]+')}$`).test(place))
    if (!isOurs || link.hash) return
    event.preventDefault()
    navigate(place + link.search)
  })
}
