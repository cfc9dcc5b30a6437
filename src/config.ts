import { readFileSync } from 'node:fs'
import {
  address,
  addressList,
  apiKey,
  file,
  maskSecret,
  oneOf,
  port,
  postgresUrl,
  publicUrl,
  rate,
  requireFile,
  type SettingType,
  seconds,
  text,
  url,
} from './setting_types.ts'

function required<T>(type: SettingType<T>, fallback: string, meaning: string) {
  return { ...type, fallback, meaning, secret: false }
}

function optional<T>(type: SettingType<T>, meaning: string) {
  return { ...type, fallback: undefined, meaning, secret: false }
}

/** A URL with a password in it, or a key, which can also come from a file named by the variable with `_FILE` behind it. */
function secret<T>(type: SettingType<T>, meaning: string) {
  return { ...type, fallback: undefined, meaning, secret: true }
}

/** Every setting: the source of parsing, of the `config` command and of the table in docs/settings.md. */
export const settings = {
  DATABASE_URL: secret(postgresUrl, 'Postgres to use, see [TLS](#tls). Unset: the embedded database in `DATA_DIR`'),
  REDIS_URL: secret(
    url('redis:', 'rediss:'),
    'Redis in front of the monthly limit. Unset: the limit is kept by the database alone',
  ),
  REDIS_PREFIX: required(text, 'prompt-signals:', 'Put before every key in Redis'),
  REDIS_CA_FILE: optional(file, "Authorities (PEM) to verify a `rediss:` server by. Unset: the system's"),
  HOST: required(text, '127.0.0.1', 'Address to listen on'),
  PORT: required(port, '3000', 'Port to listen on; 0 takes any free one'),
  TLS_CERT_FILE: optional(
    file,
    'Certificate (PEM, with its chain) to serve HTTPS by, together with `TLS_KEY_FILE`. Unset: plain HTTP',
  ),
  TLS_KEY_FILE: optional(file, 'Private key (PEM, without a passphrase) of that certificate'),
  PUBLIC_URL: optional(
    publicUrl,
    'Where callers reach the service, with the path that a proxy puts before `/api`: the links between pages begin with it. Unset: they are relative',
  ),
  TRUSTED_PROXIES: optional(
    addressList,
    'Addresses and networks of proxies whose `X-Forwarded-For` is believed, separated by commas, as `127.0.0.1, 10.0.0.0/8`. Unset: nobody is',
  ),
  RATE_LIMIT_PER_KEY: optional(
    rate,
    'How many requests an API key may send in a second, minute or hour: `50/s`, `600/min`, `10000/h`. Unset: any number',
  ),
  RATE_LIMIT_PER_ADDRESS: optional(
    rate,
    'The same for an address, with a key or without; an IPv6 address counts by its /64. Unset: any number',
  ),
  CONSOLE: required(oneOf('on', 'off'), 'on', 'Whether to serve the [console](console.md) at `/`: `on` or `off`'),
  METRICS_ADDRESS: optional(address, 'Where to serve `/metrics` instead of on `HOST` and `PORT`'),
  DATA_DIR: required(text, './data', 'Folder of the embedded database'),
  LOG_LEVEL: required(
    oneOf('fatal', 'error', 'warn', 'info', 'debug', 'trace', 'silent'),
    'info',
    'Least severe level to log: `fatal`, `error`, `warn`, `info`, `debug`, `trace` or `silent`',
  ),
  DRAIN_SECONDS: required(
    seconds,
    '0',
    'How long to go on serving after the signal to stop, as not ready: the time a load balancer needs to notice',
  ),
  SHUTDOWN_SECONDS: required(
    seconds,
    '15',
    'How long requests under way may then take, before they are given up; `0` gives them up at once',
  ),
  PROMPT_SIGNALS_KEY: secret(apiKey, 'API key with which `sync --url` calls the service'),
}

type Name = keyof typeof settings
type Parsed<N extends Name> = ReturnType<(typeof settings)[N]['parse']>
export type Config = {
  [N in Name]: (typeof settings)[N]['fallback'] extends string ? Parsed<N> : Parsed<N> | undefined
}

type Environment = Record<string, string | null | undefined>

/** Reads every setting; an option of the command line wins over the environment. */
export function readConfig(typed: Environment = {}, variables: Environment = process.env): Config {
  const entries = Object.entries(readTexts(typed, variables)).map(([name, value]) => [
    name,
    value === undefined ? undefined : settings[name as Name].parse(value, name),
  ])
  const config = Object.fromEntries(entries) as Config
  if (!config.TLS_CERT_FILE !== !config.TLS_KEY_FILE)
    throw new Error('Set both TLS_CERT_FILE and TLS_KEY_FILE, or neither')
  return config
}

/** Every setting as it can be shown: as it was written, without passwords; null for what is unset. */
export function showConfig(): Record<Name, string | null> {
  const entries = Object.entries(readTexts({}, process.env)).map(([name, value]) => [
    name,
    value === undefined ? null : settings[name as Name].secret ? maskSecret(value) : value,
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

/**
 * An empty variable is most often one that failed to expand. Taken for unset it would mean another database, or metrics
 * on the public port, so it is rejected.
 */
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
  requireFile(file, `${name}_FILE names`)
  const secret = readFileSync(file, 'utf8').trim()
  if (secret === '') throw new Error(`${name}_FILE names an empty file: ${file}`)
  return secret
}

/** What the git program needs of the environment: where things are, and the configuration of the user who runs it. */
const gitVariable = /^(PATH|HOME|USERPROFILE|SYSTEMROOT|XDG_CONFIG_HOME|TMPDIR|TEMP|TMP|GIT_CONFIG_\w+)$/i

/** The environment for git: without this program's secrets, and without the repository that a hook of git's is run for. */
export const gitEnvironment = (): NodeJS.ProcessEnv =>
  Object.fromEntries(Object.entries(process.env).filter(([name]) => gitVariable.test(name)))

/** Variables by which the runtime inside the binary can be made to run, replace or show code. */
const runtimeVariable = /^BUN_(OPTIONS|BE_BUN|INSPECT.*|JSC_.*)$/

/**
 * Throws when the environment steers the runtime. The runtime has read these variables before the program starts, so a
 * program cannot do more than end.
 */
export function requireNoRuntimeVariables(): void {
  const found = Object.keys(process.env).filter((name) => runtimeVariable.test(name))
  if (found.length > 0)
    throw new Error(`Unset ${found.join(' and ')}: the program runs only the code that it was built of`)
}

/** Whether a terminal may be written to in colour (no-color.org). */
export const isColourWanted = ({ NO_COLOR, TERM }: Environment = process.env): boolean => !NO_COLOR && TERM !== 'dumb'
