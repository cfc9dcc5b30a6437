import { root } from './router.ts'

/** Each tab keeps its key until it is closed, where only this tab finds it. */
const place = `prompt-signals key ${root.pathname}`

export const currentKey = (): string | null => sessionStorage.getItem(place)

/** A key that is pasted with "…" would fit no header: encoded, it is one that the service does not know. */
export const bearerOf = (key: string | null): string => `Bearer ${encodeURI(String(key))}`

export const keepKey = (key: string): void => sessionStorage.setItem(place, key)

export const forgetKey = (): void => sessionStorage.removeItem(place)

/** Takes the key behind the # out of the address, so that it stays there no longer than it must. */
export function takeKeyFromAddress(): string | null {
  const given = new URLSearchParams(location.hash.slice(1)).get('key')
  if (given !== null) history.replaceState(history.state, '', location.pathname + location.search)
  return given?.trim() ?? null
}

/** An answer goes to the tab that asked. `usedAt` is when the user last clicked or typed in the tab that answers. */
type Message =
  | { kind: 'ask'; from: number }
  | { kind: 'answer'; to: number; key: string; usedAt: number }
  | { kind: 'end' }

export type Tabs = {
  /** Asks the other tabs for their key. */
  ask(): void
  /** Signs the other tabs out. */
  end(): void
  leave(): void
}

/**
 * Joins the tabs of this browser that show the same service. `onKey` gets the key of the first tab that answers, and
 * again that of any tab used later: a new tab continues where its user comes from.
 */
export function joinTabs(onKey: (key: string) => void, onEnd: () => void): Tabs {
  const channel = new BroadcastChannel(`prompt-signals ${root.pathname}`)
  const post = (message: Message) => channel.postMessage(message)
  const own = Math.random()
  const listening = new AbortController()
  let usedAt = 0
  let latest = -1
  const use = () => {
    usedAt = Date.now()
  }
  addEventListener('pointerdown', use, listening)
  addEventListener('keydown', use, listening)
  channel.onmessage = ({ data }: MessageEvent<Message>) => {
    const key = currentKey()
    if (data.kind === 'end') onEnd()
    if (data.kind === 'ask' && key !== null) post({ kind: 'answer', to: data.from, key, usedAt })
    if (data.kind === 'answer' && data.to === own && data.usedAt > latest) {
      latest = data.usedAt
      onKey(data.key)
    }
  }
  return {
    ask: () => post({ kind: 'ask', from: own }),
    end: () => post({ kind: 'end' }),
    leave() {
      listening.abort()
      channel.close()
    },
  }
}
