import { useEffect, useState } from 'preact/hooks'
import { answerOf, api, type OwnKey } from './api.ts'
import { type Failure, readFailure } from './failure.ts'
import { forgetAnswers, whenSignedOut } from './query.ts'
import { bearerOf, currentKey, forgetKey, joinTabs, keepKey, type Tabs, takeKeyFromAddress } from './session.ts'

/** A key and whose it is. */
export type Holder = { key: string; organisation: OwnKey['organisation'] }

type State = {
  key: string | null
  /** The key was rejected. */
  wasRefused?: boolean
  /** A link leads to another organisation than the one that is signed in. */
  question?: { held: Holder; offered: Holder }
  /** Why a link was not followed. */
  linkFailure?: Failure
}

/** How long a new tab waits for another one before it shows the sign-in. A later answer still counts. */
const answerMs = 150

/** The key of this tab: from a link, from another tab, or typed. `linkKey` is that of the address at the start. */
export function useSession(linkKey: string | null) {
  const [held] = useState(() => {
    const held = currentKey()
    if (held === null && linkKey !== null) keepKey(linkKey)
    return held
  })
  const [state, setState] = useState<State>({ key: held ?? linkKey })
  // Nothing is shown while it is open with which key.
  const [isOpen, setOpen] = useState(held !== null ? linkKey !== null : linkKey === null)
  const [tabs, setTabs] = useState<Tabs>()

  /** Answers to another key are forgotten, but not those that a page already shows. */
  const use = (key: string, rest: Omit<State, 'key'> = {}) => {
    if (key !== currentKey()) forgetAnswers()
    keepKey(key)
    setOpen(false)
    setState({ key, ...rest })
  }
  const end = (wasRefused = false) => {
    forgetKey()
    forgetAnswers()
    setOpen(false)
    setState({ key: null, wasRefused })
  }

  /** A link may not lead into another organisation unnoticed: what is written there would be its owner's. */
  const offer = async (held: string, offered: string) => {
    try {
      const [from, to] = await Promise.all([findHolder(held), requireHolder(offered)])
      if (!from || from.organisation.id === to.organisation.id) use(offered)
      else use(held, { question: { held: from, offered: to } })
    } catch (error) {
      use(held, { linkFailure: readFailure(error) })
    }
  }

  useEffect(() => {
    whenSignedOut(() => end(true))
    const joined = joinTabs((key) => (linkKey === null ? use(key) : offer(key, linkKey)), end)
    setTabs(joined)
    if (held === null) joined.ask()
    else if (linkKey !== null) offer(held, linkKey)
    const timer = held === null ? setTimeout(() => setOpen(false), answerMs) : undefined
    const follow = () => {
      const [held, given] = [currentKey(), takeKeyFromAddress()]
      if (given === null) return
      if (held === null) return use(given)
      setOpen(true)
      offer(held, given)
    }
    addEventListener('hashchange', follow)
    return () => {
      clearTimeout(timer)
      removeEventListener('hashchange', follow)
      joined.leave()
    }
  }, [])

  const signOut = () => {
    tabs?.end()
    end()
  }
  return { ...state, isOpen, signIn: (key: string) => use(key), signOut }
}

async function requireHolder(key: string): Promise<Holder> {
  const headers = { authorization: bearerOf(key) }
  const { data } = await answerOf(api.GET('/api/v1/key', { headers }))
  return { key, organisation: data.organisation }
}

const findHolder = (key: string): Promise<Holder | undefined> =>
  requireHolder(key).catch((error) => {
    if (readFailure(error).kind !== 'signed out') throw error
    return undefined
  })
