// Opens pages of the console, signed in as a tenant of the file.
import { afterAll, afterEach, beforeAll, beforeEach, expect } from 'bun:test'
import type { BrowserContextOptions } from 'playwright-core'
import { scopes as allScopes, type Scope } from '../../src/http/caller.ts'
import { openWindow, type Watched } from '../browser.ts'
import type { Tenant, TestService } from '../service.ts'
import { shareService } from '../use.ts'

type WindowOptions = BrowserContextOptions & { expectsTroubles?: boolean }

export type TestConsole = {
  service: TestService
  tenant: Tenant
  /** The key of all scopes that pages are opened with. */
  admin: string
  keyWith(scopes: Scope[], name?: string): Promise<string>
  /** Opens a page; with options, in a window of its own. `prepare` is called before the page is requested. */
  open(
    path: string,
    options?: { key?: string; prepare?(window: Watched): Promise<unknown> } & WindowOptions,
  ): Promise<Watched>
}

/** Opens windows. One that a test opens is closed after it, and must have had no trouble, unless it `expectsTroubles`. */
export function useWindows(): (origin: string, options?: WindowOptions) => Promise<Watched> {
  let opened: { window: Watched; expectsTroubles: boolean }[] = []
  // What a hook has opened before the tests stays open.
  beforeEach(() => {
    opened = []
  })
  afterEach(async () => {
    const troubles = opened.flatMap(({ window, expectsTroubles }) => (expectsTroubles ? [] : window.troubles))
    await Promise.all(opened.map(({ window }) => window.page.context().close()))
    expect(troubles).toEqual([])
  })
  return async (origin, { expectsTroubles = false, ...options } = {}) => {
    const window = await openWindow(origin, options)
    opened.push({ window, expectsTroubles })
    return window
  }
}

/** On the shared service. Filled before the tests run. */
export function useConsole(): TestConsole {
  const own = {} as TestConsole
  const openIn = useWindows()
  const openUsual = useUsualWindow()
  beforeAll(async () => {
    const service = await shareService()
    const tenant = await service.createTenant()
    const keyWith = async (scopes: Scope[], name = 'console') => (await service.createKey(tenant, scopes, { name })).key
    const admin = await keyWith([...allScopes])
    const open: TestConsole['open'] = async (path, given) => {
      const { key = admin, prepare, ...options } = given ?? {}
      const window = (!given && (await openUsual(service.url))) || (await openIn(service.url, options))
      await prepare?.(window)
      await window.page.goto(`${service.url}${path}#key=${key}`)
      return window
    }
    Object.assign(own, { service, tenant, admin, keyWith, open })
  })
  return own
}

/**
 * One window for the first page of each test that opens it like any other: a new window takes as much processor time as
 * the page itself. Returns undefined where a new one is needed: in hooks, and for a second page.
 */
function useUsualWindow(): (origin: string) => Promise<Watched | undefined> {
  let window: Watched | undefined
  let isFree = false
  beforeEach(() => {
    isFree = true
  })
  afterEach(() => {
    isFree = false
    expect(window?.troubles ?? []).toEqual([])
  })
  afterAll(() => window?.page.context().close())
  return async (origin) => {
    if (!isFree) return undefined
    isFree = false
    if (!window || window.page.isClosed()) window = await openWindow(origin)
    // Ends the page before, so that nothing it still asks for is counted for this one.
    await window.page.goto('about:blank')
    await window.page.setViewportSize({ width: 1_280, height: 720 })
    await window.page.emulateMedia({ colorScheme: null })
    window.troubles.length = 0
    window.requests.length = 0
    return window
  }
}
