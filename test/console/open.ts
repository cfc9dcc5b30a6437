// Opens pages of the console, signed in as a tenant of the file.
import { afterEach, beforeAll, beforeEach, expect } from 'bun:test'
import type { BrowserContextOptions } from 'playwright-core'
import { scopes as allScopes, type Scope } from '../../src/lib/scopes.ts'
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
  /** Opens a page in a new window, which is closed after the test. `prepare` is called before the page is requested. */
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
  beforeAll(async () => {
    const service = await shareService()
    const tenant = await service.createTenant()
    const keyWith = async (scopes: Scope[], name = 'console') => (await service.createKey(tenant, scopes, { name })).key
    const admin = await keyWith([...allScopes])
    const open: TestConsole['open'] = async (path, { key = admin, prepare, ...options } = {}) => {
      const window = await openIn(service.url, options)
      await prepare?.(window)
      await window.page.goto(`${service.url}${path}#key=${key}`)
      return window
    }
    Object.assign(own, { service, tenant, admin, keyWith, open })
  })
  return own
}
