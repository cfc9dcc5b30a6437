import { createPrivateKey, X509Certificate } from 'node:crypto'
import { readFileSync } from 'node:fs'
import type { Config } from '../config.ts'
import type { Certificate } from '../platform.ts'

/** Reads the certificate that the settings name, if any. Throws one line when it cannot be used. */
export function readCertificate({ TLS_CERT_FILE, TLS_KEY_FILE }: Config): Certificate | undefined {
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
