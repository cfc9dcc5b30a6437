import type { Config } from '../config.ts'

/** The URL of a server with these settings, from this machine. */
export const localUrlOf = ({ HOST, PORT, TLS_CERT_FILE }: Config): string =>
  `${TLS_CERT_FILE ? 'https' : 'http'}://${addressOf(HOST)}:${PORT}`

/** A server that listens on all addresses is reached on the loopback address. */
const addressOf = (host: string): string =>
  ({ '0.0.0.0': '127.0.0.1', '::': '[::1]' })[host] ?? (host.includes(':') ? `[${host}]` : host)

/** A link that opens the console signed in. The part after # stays in the browser: no server and no log sees it. */
export const linkTo = (url: string, key: string): string => `${url}/#key=${key}`
