// Opens pages of the console, signed in as a tenant of the test's own.
import { afterAll, beforeAll } from 'bun:test'
import type { Browser, BrowserContextOptions } from 'playwright-core'
import { scopes as allScopes, type Scope } from '../../src/http/caller.ts'
import { launchBrowser, openWindow, type Watched } from '../browser.ts'
import type { Tenant, TestService } from '../service.ts'
import { shareService } from '../use.ts'

export type TestConsole = {
  service: TestService
  tenant: Tenant
  /** The key of all scopes that pages are opened with. */
  admin: string
  keyWith(scopes: Scope[], name?: string): Promise<string>
  /** A page in a window of its own. Where `prepare` is given, it is called before the page is asked for. */
  open(
    path: string,
    options?: { key?: string; prepare?(window: Watched): Promise<unknown> } & BrowserContextOptions,
  ): Promise<Watched>
}

/** On the shared service, with one browser for the file. Filled before the tests run. */
export function useConsole(): TestConsole {
  const own = {} as TestConsole
  let browser: Browser
  beforeAll(async () => {
    browser = await launchBrowser()
    Object.assign(own, await createConsole(browser))
  })
  afterAll(() => browser?.close())
  return own
}

async function createConsole(browser: Browser): Promise<TestConsole> {
  const service = await shareService()
  const tenant = await service.createTenant()
  const keyWith = async (scopes: Scope[], name = 'console') => (await service.createKey(tenant, scopes, { name })).key
  const admin = await keyWith([...allScopes])
  return {
    service,
    tenant,
    admin,
    keyWith,
    async open(path, { key = admin, prepare, ...options } = {}) {
      const window = await openWindow(browser, service.url, options)
      await prepare?.(window)
      await window.page.goto(`${service.url}${path}#key=${key}`)
      return window
    },
  }
}
