import { readFileSync } from 'node:fs'
import { splitHosts } from '../lib/hosts.ts'

/** An option of the driver: no TLS, or TLS with or without a check of the server's certificate and name. */
export type Tls = false | { rejectUnauthorized: boolean; ca?: string }

/** Takes TLS out of a URL: the driver verifies nothing for `sslmode=require`, and sends `sslrootcert` to the server. */
export function parseTls(text: string): { url: string; ssl: Tls } {
  const url = new URL(text)
  const root = url.searchParams.get('sslrootcert')
  const mode = url.searchParams.get('sslmode') ?? (root ? 'require' : 'disable')
  url.searchParams.delete('sslmode')
  url.searchParams.delete('sslrootcert')
  if (mode === 'disable') return { url: url.href, ssl: false }
  return { url: url.href, ssl: { rejectUnauthorized: mode !== 'no-verify', ...readCa(root ?? undefined) } }
}

/** Whether passwords and data would go over a network as plain text. */
export const isUnencryptedRemote = (text: string): boolean =>
  splitHosts(text).some(
    ({ href, hostname }) => parseTls(href).ssl === false && !/^(localhost|127(\.\d+){3}|\[::1\])?$/i.test(hostname),
  )

/** The certificate authorities in the file; without a file, those that the system trusts. */
export const readCa = (file: string | undefined): { ca?: string } =>
  file === undefined ? {} : { ca: readFileSync(file, 'utf8') }
