import { readFileSync } from 'node:fs'

type Setting<T> = {
  /** Undefined when the setting may be absent. */
  fallback: string | undefined
  /** Secrets can also come from a file named by the variable with `_FILE` behind it. */
  secret: boolean
  meaning: string
  parse(text: string, name: string): T
}

const text = (value: string) => value

const url =
  (...protocols: string[]) =>
  (value: string, name: string) => {
    const protocol = URL.canParse(value) ? new URL(value).protocol : ''
    // The value itself stays out of the message: it holds a password.
    if (!protocols.includes(protocol)) {
      throw new Error(`${name} must be a URL that begins with ${protocols.map((p) => `${p}//`).join(' or ')}`)
    }
    if (!isDecodable(value)) {
      throw new Error(`${name} must have every "%" of its user, password and name written as %25`)
    }
    return value
  }

function isDecodable(value: string): boolean {
  try {
    decodeURIComponent(value)
    return true
  } catch {
    return false
  }
}

const port = (value: string, name: string) => {
  if (!/^\d{1,5}$/.test(value) || Number(value) > 65_535) {
    throw new Error(`${name} must be a port number from 0 to 65535, not "${value}"`)
  }
  return Number(value)
}

const oneOf =
  (...allowed: string[]) =>
  (value: string, name: string) => {
    if (!allowed.includes(value)) {
      throw new Error(`${name} must be one of ${allowed.join(', ')}, not "${value}"`)
    }
    return value
  }

const setting = <T>(
  parse: Setting<T>['parse'],
  fallback: string | undefined,
  meaning: string,
  secret = false,
): Setting<T> => ({ parse, fallback, meaning, secret })

/** Every setting: the source of parsing and of the README's table. */
export const settings = {
  DATABASE_URL: setting(
    url('postgres:', 'postgresql:'),
    undefined,
    'Postgres to use. Unset: the embedded database in `DATA_DIR`',
    true,
  ),
  REDIS_URL: setting(
    url('redis:', 'rediss:'),
    undefined,
    'Redis in front of the monthly limit. Unset: the limit is kept by the database alone',
    true,
  ),
  REDIS_PREFIX: setting(text, 'prompt-signals:', 'Put before every key in Redis'),
  HOST: setting(text, '127.0.0.1', 'Address to listen on'),
  PORT: setting(port, '3000', 'Port to listen on; 0 takes any free one'),
  DATA_DIR: setting(text, './data', 'Folder of the embedded database'),
  LOG_LEVEL: setting(
    oneOf('fatal', 'error', 'warn', 'info', 'debug', 'trace', 'silent'),
    'info',
    'Least severe level to log: `fatal`, `error`, `warn`, `info`, `debug`, `trace` or `silent`',
  ),
}

type Name = keyof typeof settings
type Parsed<N extends Name> = ReturnType<(typeof settings)[N]['parse']>
type Optional = 'DATABASE_URL' | 'REDIS_URL'
export type Config = { [N in Name]: N extends Optional ? Parsed<N> | undefined : Parsed<N> }

type Environment = Record<string, string | null | undefined>

/** Reads every setting, what was typed before what is in the environment; an empty one counts as unset. */
export function readConfig(typed: Environment = {}, variables: Environment = process.env): Config {
  const environment = { ...variables, ...Object.fromEntries(Object.entries(typed).filter(([, value]) => value)) }
  const entries = Object.entries(settings).map(([name, { parse, fallback, secret }]) => {
    const value = (secret ? readSecret(name, environment) : environment[name]) || fallback
    return [name, value === undefined ? undefined : parse(value, name)]
  })
  return Object.fromEntries(entries) as Config
}

function readSecret(name: string, environment: Environment): string | null | undefined {
  const file = environment[`${name}_FILE`]
  if (!file) return environment[name]
  if (environment[name]) throw new Error(`Set ${name} or ${name}_FILE, not both`)
  try {
    return readFileSync(file, 'utf8').trim()
  } catch {
    throw new Error(`${name}_FILE names a file that cannot be read: ${file}`)
  }
}
