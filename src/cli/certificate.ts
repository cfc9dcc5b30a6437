import { createPrivateKey, X509Certificate } from 'node:crypto'
import { readFileSync } from 'node:fs'
import type { Config } from '../config.ts'
import type { Log } from '../log.ts'
import type { Certificate, Listener } from '../platform.ts'

/** Reads the certificate that the settings name, if they name one, and throws one line when it cannot be served with. */
export function readCertificate({ TLS_CERT_FILE, TLS_KEY_FILE }: Config): Certificate | undefined {
  if (!TLS_CERT_FILE || !TLS_KEY_FILE) return undefined
  const cert = readPem(TLS_CERT_FILE, 'TLS_CERT_FILE', (pem) => new X509Certificate(pem))
  const key = readPem(TLS_KEY_FILE, 'TLS_KEY_FILE', createPrivateKey)
  if (!cert.parsed.checkPrivateKey(key.parsed)) throw new Error('TLS_KEY_FILE is not the key of TLS_CERT_FILE')
  return { cert: cert.pem, key: key.pem }
}

/** The reason of a failure stays out of the message, because it could quote the key. */
function readPem<T>(path: string, name: string, parse: (pem: string) => T): { pem: string; parsed: T } {
  try {
    const pem = readFileSync(path, 'utf8')
    return { pem, parsed: parse(pem) }
  } catch {
    throw new Error(`${name} cannot be used: ${path}`)
  }
}

/** Serves with what is in the files now on every SIGHUP; a certificate that cannot be used leaves the old one in place. */
export function reloadOnSignal(config: Config, listener: Listener, log: Log): void {
  process.on('SIGHUP', () => {
    try {
      listener.replaceCertificate(readCertificate(config) as Certificate)
      log.info('the certificate was reloaded')
    } catch (error) {
      log.error({ reason: (error as Error).message }, 'the certificate was not reloaded; the old one stays in use')
    }
  })
}
