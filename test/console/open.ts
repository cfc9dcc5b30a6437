// Opens pages of the console, signed in, on a service of the test's own.
import type { Browser, BrowserContextOptions } from 'playwright-core'
import { scopes as allScopes, type Scope } from '../../src/http/caller.ts'
import { createKey } from '../../src/keys/manage.ts'
import { launchBrowser, openWindow, type Watched } from '../browser.ts'
import { startService, type Tenant, type TestService } from '../service.ts'

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
  close(): Promise<void>
}

export async function startConsole(): Promise<TestConsole> {
  const service = await startService()
  const tenant = await service.createTenant()
  const browser: Browser = await launchBrowser()
  const keyWith = async (scopes: Scope[], name = 'console') =>
    (await createKey(service.services.db, service.clock, { org: tenant.org, name, scopes, expiresAt: null })).key
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
    async close() {
      await browser.close()
      await service.close()
    },
  }
}
