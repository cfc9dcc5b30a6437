import { createPrivateKey, X509Certificate } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { resolve } from 'node:path'
import { createApp, createMetricsApp } from '../app.ts'
import type { Config } from '../config.ts'
import type { DatabaseObserver, Db } from '../db/client.ts'
import { isUnencryptedRemote } from '../db/tls.ts'
import { openServices, type Services } from '../deps.ts'
import { crashResponse } from '../http/middleware.ts'
import { createLog, type Log } from '../log.ts'
import { hasOrganisations } from '../orgs/manage.ts'
import { type Address, type App, build, type Certificate, type Listener, listen } from '../platform.ts'
import type { Context } from './command.ts'
import { programFor } from './init.ts'

/** How long closing may take when requests are not waited for: the embedded database writes its last checkpoint. */
const closeMs = 10_000

export async function runUntilStopped(
  context: Context,
  opening: Promise<Db>,
  observer: DatabaseObserver,
  stopped: Promise<string>,
): Promise<void> {
  const { args, config, clock } = context
  const log = createLog(config.LOG_LEVEL)
  observer.onFailure = (error) => abort(log, { err: error }, 'embedded database failed; restart to recover')
  try {
    const db = await opening
    let close = db.close
    try {
      const services = openServices({ db, observer }, config, clock, log)
      close = services.close
      services.metrics.describeBuild(build)
      const listeners = startListening(services, config)
      const [{ url }, { url: metricsUrl } = { url }] = listeners
      const where = config.DATABASE_URL
        ? { database: 'postgres' }
        : { database: 'embedded', data_dir: resolve(config.DATA_DIR) }
      log.info({ url, metrics: `${metricsUrl}/metrics`, ...where, ...build }, 'serving')
      if (config.DATABASE_URL && isUnencryptedRemote(config.DATABASE_URL)) {
        log.warn({ dependency: 'database' }, 'connection to the database is not encrypted: set sslmode=verify-full')
      }
      if (args.options.demo) {
        const { offerDemo } = await import('./demo.ts')
        await offerDemo(context, db, url)
      } else if (!(await hasOrganisations(db.sql).catch(() => true))) {
        const command = `${programFor(config, new URL(url).port)} init`
        log.info({ command }, 'no organisation yet: run the command to create the first one')
      }
      log.info({ signal: await stopped }, 'stopping')
      await stopListening(listeners, services, config, log)
    } finally {
      await close()
    }
    log.info('stopped')
  } finally {
    await log.close()
  }
}

async function abort(log: Log, fields: object, message: string): Promise<void> {
  log.fatal(fields, message)
  await log.close()
  process.exit(1)
}

function startListening(services: Services, config: Config): [Listener, ...Listener[]] {
  const { HOST: host, PORT: port, REUSE_PORT, METRICS_ADDRESS, CONSOLE, FEEDBACK_BUTTON } = config
  const app = createApp(services, {
    servesMetrics: !METRICS_ADDRESS,
    servesConsole: CONSOLE === 'on',
    servesButton: FEEDBACK_BUTTON === 'on',
  })
  const certificate = readCertificate(config)
  const main = listenOn(app, { host, port, reusePort: REUSE_PORT === 'on', certificate }, 'PORT')
  if (!METRICS_ADDRESS) return [main]
  return [main, listenOn(createMetricsApp(services), METRICS_ADDRESS, 'METRICS_ADDRESS')]
}

function listenOn(app: App, address: Address, setting: string): Listener {
  try {
    return listen(app, crashResponse, address)
  } catch (error) {
    const { code, message } = error as Error & { code?: string }
    const inUse = `the port is in use. Stop the other program, or set ${setting}.`
    // For an unknown name the code is that of any earlier failure.
    const reason = code === 'EADDRINUSE' ? inUse : `${message}. Check the address and the port.`
    throw new Error(`Cannot listen on ${address.host} port ${address.port}: ${reason}`)
  }
}

function readCertificate({ TLS_CERT_FILE, TLS_KEY_FILE }: Config): Certificate | undefined {
  if (!TLS_CERT_FILE || !TLS_KEY_FILE) return undefined
  const cert = readPem(TLS_CERT_FILE, 'TLS_CERT_FILE', (pem) => new X509Certificate(pem))
  const key = readPem(TLS_KEY_FILE, 'TLS_KEY_FILE', createPrivateKey)
  if (!cert.parsed.checkPrivateKey(key.parsed)) throw new Error('TLS_KEY_FILE is not the key of TLS_CERT_FILE')
  return { cert: cert.pem, key: key.pem }
}

/** The message leaves out the reason of a failure, which could quote the key. */
function readPem<T>(path: string, name: string, parse: (pem: string) => T): { pem: string; parsed: T } {
  try {
    const pem = readFileSync(path, 'utf8')
    return { pem, parsed: parse(pem) }
  } catch {
    throw new Error(`${name} cannot be used: ${path}`)
  }
}

/** Drains, and then waits for in-flight requests unless SHUTDOWN_SECONDS is 0. */
async function stopListening(listeners: Listener[], services: Services, config: Config, log: Log): Promise<void> {
  const { DRAIN_SECONDS, SHUTDOWN_SECONDS } = config
  await services.drain.run(DRAIN_SECONDS * 1_000)
  const onTimeout = () => abort(log, { seconds: SHUTDOWN_SECONDS }, 'shutdown timed out; aborting in-flight requests')
  setTimeout(onTimeout, SHUTDOWN_SECONDS > 0 ? SHUTDOWN_SECONDS * 1_000 : closeMs).unref()
  const stopped = Promise.all(listeners.map((listener) => listener.stop()))
  if (SHUTDOWN_SECONDS > 0) await stopped
}
