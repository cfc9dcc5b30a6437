import { readFileSync } from 'node:fs'
import * as types from './setting_types.ts'

const setting = <T, Fallback extends string | undefined = undefined>(
  type: types.SettingType<T>,
  meaning: string,
  fallback = undefined as Fallback,
) => ({ secret: false, ...type, fallback, meaning })

/** Every setting: the source of the parser, of the `config` command and of the table in docs/settings.md. */
export const settings = {
  DATABASE_URL: setting(
    types.postgresUrl,
    'Postgres server, or [several hosts](operating.md#several-hosts) of which one is the primary; see [TLS](#tls). Unset: the embedded database in `DATA_DIR`',
  ),
  REDIS_URL: setting(
    types.redisUrl,
    'Redis that keeps refused signals away from the database: a server, [sentinels or a cluster](operating.md#redis). Unset: only the database enforces the limit',
  ),
  REDIS_PREFIX: setting(types.text, 'Prefix of every key in Redis', 'prompt-signals:'),
  REDIS_CA_FILE: setting(types.file, 'Certificate authorities (PEM) for `rediss` URLs. Unset: those of the system'),
  HOST: setting(types.text, 'Address to listen on', '127.0.0.1'),
  PORT: setting(types.port, 'Port to listen on; `0` picks a free one', '3000'),
  REUSE_PORT: setting(
    types.oneOf('on', 'off'),
    'Whether several processes may listen on `PORT`: `on` or `off`. Linux only; needs `DATABASE_URL` and `METRICS_ADDRESS`',
    'off',
  ),
  TLS_CERT_FILE: setting(
    types.file,
    'Certificate (PEM, with its chain) for HTTPS, together with `TLS_KEY_FILE`. Restart to renew it. Unset: plain HTTP',
  ),
  TLS_KEY_FILE: setting(types.file, 'Private key (PEM, without a passphrase) of that certificate'),
  PUBLIC_URL: setting(
    types.publicUrl,
    'URL at which clients reach the service, with the path that a proxy puts before `/api`. Prefix of the links between pages. Unset: links are relative',
  ),
  TRUSTED_PROXIES: setting(
    types.addressList,
    'Addresses and networks of proxies whose `X-Forwarded-For` is trusted, separated by commas, such as `127.0.0.1, 10.0.0.0/8`. Unset: none',
  ),
  RATE_LIMIT_PER_KEY: setting(
    types.rate,
    'Requests per second, minute or hour of one API key: `50/s`, `600/min`, `10000/h`. Unset: unlimited',
  ),
  RATE_LIMIT_PER_ADDRESS: setting(
    types.rate,
    'The same for one client address, with or without a key; IPv6 addresses count by their /64. Unset: unlimited',
  ),
  CONSOLE: setting(types.oneOf('on', 'off'), 'Whether to serve the [console](console.md) at `/`: `on` or `off`', 'on'),
  FEEDBACK_BUTTON: setting(
    types.oneOf('on', 'off'),
    'Whether to serve the [button](browser.md) for web pages at `/feedback.js`: `on` or `off`',
    'on',
  ),
  WEBHOOK_ALLOWED_HOSTS: setting(
    types.hostList,
    'Names, addresses and networks that [endpoints](interface.md#delivery) may reach beside public addresses, over http too, separated by commas, such as `chat.internal, 10.0.0.0/8`. Unset: none',
  ),
  METRICS_ADDRESS: setting(types.address, 'Address for `/metrics` instead of `HOST` and `PORT`'),
  DATA_DIR: setting(types.text, 'Folder of the embedded database', './data'),
  REQUIRE_DATABASE: setting(
    types.oneOf('on', 'off'),
    'Whether `serve` refuses to start when `DATA_DIR` has no database, instead of creating one: `on` or `off`',
    'off',
  ),
  LOG_LEVEL: setting(
    types.oneOf('fatal', 'error', 'warn', 'info', 'debug', 'trace', 'silent'),
    'Lowest level to log: `fatal`, `error`, `warn`, `info`, `debug`, `trace` or `silent`',
    'info',
  ),
  DRAIN_SECONDS: setting(
    types.seconds,
    'How long to keep serving after the signal to stop, reported as not ready: the time a load balancer needs to notice',
    '0',
  ),
  SHUTDOWN_SECONDS: setting(
    types.seconds,
    'Grace period for in-flight requests after draining; `0` aborts them immediately',
    '15',
  ),
  PROMPT_SIGNALS_KEY: setting(types.apiKey, 'API key for commands with `--url`'),
}

type Name = keyof typeof settings
type Parsed<N extends Name> = ReturnType<(typeof settings)[N]['parse']>
export type Config = {
  [N in Name]: (typeof settings)[N]['fallback'] extends string ? Parsed<N> : Parsed<N> | undefined
}

type Environment = Record<string, string | null | undefined>

/** Options of the command line override the environment. */
export function readConfig(typed: Environment = {}, variables: Environment = process.env): Config {
  const entries = Object.entries(readTexts(typed, variables)).map(([name, value]) => [
    name,
    value === undefined ? undefined : settings[name as Name].parse(value, name),
  ])
  const config = Object.fromEntries(entries) as Config
  if (!config.TLS_CERT_FILE !== !config.TLS_KEY_FILE)
    throw new Error('Set both TLS_CERT_FILE and TLS_KEY_FILE, or neither')
  requireShareable(config)
  // They would replace the part of each key that chooses its server.
  if (/^rediss?\+cluster:/i.test(config.REDIS_URL ?? '') && config.REDIS_PREFIX.includes('{'))
    throw new Error('REDIS_PREFIX must have no "{" with a Redis Cluster')
  return config
}

function requireShareable({ REUSE_PORT, DATABASE_URL, METRICS_ADDRESS }: Config): void {
  if (REUSE_PORT === 'off') return
  if (process.platform !== 'linux') throw new Error('REUSE_PORT=on works only on Linux')
  if (!DATABASE_URL) throw new Error('REUSE_PORT=on needs DATABASE_URL: only one process can use the embedded database')
  // On the shared port a scrape would reach any of the processes.
  if (!METRICS_ADDRESS) throw new Error('REUSE_PORT=on needs METRICS_ADDRESS, another one for each process')
}

/** Every setting as it was written, with secrets masked; null if unset. */
export function showConfig(): Record<Name, string | null> {
  const entries = Object.entries(readTexts({}, process.env)).map(([name, value]) => [
    name,
    value === undefined ? null : settings[name as Name].secret ? types.maskSecret(value) : value,
  ])
  return Object.fromEntries(entries) as Record<Name, string | null>
}

function readTexts(typed: Environment, variables: Environment): Record<string, string | undefined> {
  const entries = Object.entries(settings).map(([name, { fallback, secret }]) => {
    const value = readVariable(name, typed) ?? (secret ? readSecret(name, variables) : readVariable(name, variables))
    return [name, value ?? fallback]
  })
  return Object.fromEntries(entries)
}

/** Rejects an empty variable, which often failed to expand: as unset it would select another database. */
function readVariable(name: string, environment: Environment): string | undefined {
  const value = environment[name] ?? undefined
  if (value === '') throw new Error(`${name} is empty: give it a value or unset it`)
  return value
}

function readSecret(name: string, environment: Environment): string | undefined {
  const value = readVariable(name, environment)
  const file = readVariable(`${name}_FILE`, environment)
  if (file === undefined) return value
  if (value !== undefined) throw new Error(`Set ${name} or ${name}_FILE, not both`)
  types.requireFile(file, `${name}_FILE names`)
  const secret = readFileSync(file, 'utf8').trim()
  if (secret === '') throw new Error(`${name}_FILE names an empty file: ${file}`)
  return secret
}

const gitVariable = /^(PATH|HOME|USERPROFILE|SYSTEMROOT|XDG_CONFIG_HOME|TMPDIR|TEMP|TMP|GIT_CONFIG_\w+)$/i

/** The environment for git: without our secrets, and without the repository of a surrounding git hook. */
export const gitEnvironment = (): NodeJS.ProcessEnv =>
  Object.fromEntries(Object.entries(process.env).filter(([name]) => gitVariable.test(name)))

/** The runtime reads these before the program starts. They can make it run, replace or show code. */
export function requireNoRuntimeVariables(): void {
  const found = Object.keys(process.env).filter((name) => /^BUN_(OPTIONS|BE_BUN|INSPECT.*|JSC_.*)$/.test(name))
  if (found.length > 0)
    throw new Error(`Unset ${found.join(' and ')}: the program runs only the code that it was built from`)
}

/** The URL of a server with these settings, from this machine. */
export const localUrlOf = ({ HOST, PORT, TLS_CERT_FILE }: Config): string =>
  `${TLS_CERT_FILE ? 'https' : 'http'}://${addressOf(HOST)}:${PORT}`

/** A server that listens on all addresses is reached on the loopback address. */
const addressOf = (host: string): string =>
  ({ '0.0.0.0': '127.0.0.1', '::': '[::1]' })[host] ?? (host.includes(':') ? `[${host}]` : host)
