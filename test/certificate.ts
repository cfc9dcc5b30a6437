import { join } from 'node:path'

/** Creates a certificate that signs itself, with its key, in a folder. */
export function createCertificate(folder: string, name: string, ...more: string[]) {
  const files = { TLS_CERT_FILE: join(folder, `${name}.pem`), TLS_KEY_FILE: join(folder, `${name}.key`) }
  const key = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes', '-keyout', files.TLS_KEY_FILE]
  const args = ['req', '-x509', ...key, '-days', '2', '-subj', `/CN=${name}`, ...more, '-out', files.TLS_CERT_FILE]
  const { success, stderr } = Bun.spawnSync(['openssl', ...args])
  if (!success) throw new Error(`openssl, which this test needs, failed: ${stderr}`)
  return files
}
