import { accessSync, constants, statSync } from 'node:fs'
import { BlockList, isIP } from 'node:net'
import { type HostList, splitHosts } from './lib/hosts.ts'

/** The type of a setting: its documented name, and a parser that throws one line saying what is allowed. */
export type SettingType<T> = {
  type: string
  parse(value: string, name: string): T
  /** Messages never show its value. It can also be read from the file that the variable `…_FILE` names. */
  secret?: boolean
}

/** A type whose parser returns undefined for invalid values. Messages show them, unless they can hold a password. */
const typeOf = <T>(
  type: string,
  expected: string,
  parse: (value: string) => T | undefined,
  isShown = true,
): SettingType<T> => ({
  type,
  parse(value, name) {
    const parsed = parse(value)
    if (parsed === undefined) throw new Error(`${name} must be ${expected}${isShown ? `, not "${value}"` : ''}`)
    return parsed
  },
})

export const text: SettingType<string> = { type: 'text', parse: (value) => value }

const maxPort = 65_535
const maxSeconds = 3_600

export const port = typeOf('port', `a port number from 0 to ${maxPort}`, (value) => wholeNumber(value, maxPort))

export const seconds = typeOf('seconds', `a whole number of seconds from 0 to ${maxSeconds}`, (value) =>
  wholeNumber(value, maxSeconds),
)

function wholeNumber(value: string, max: number): number | undefined {
  return /^\d{1,5}$/.test(value) && Number(value) <= max ? Number(value) : undefined
}

export const address = typeOf('host:port', 'a host and a port, such as 127.0.0.1:9090', (value) => {
  const [, bracketed, plain, digits = ''] = /^(?:\[([^\]]+)\]|([^:[\]]+)):(\d+)$/.exec(value) ?? []
  const host = bracketed ?? plain
  const port = wholeNumber(digits, maxPort)
  return host && port !== undefined ? { host, port } : undefined
})

export const addressList = typeOf('CIDR list', 'addresses and networks, such as 127.0.0.1, 10.0.0.0/8', (value) => {
  const list = new BlockList()
  return value.split(',').every((entry) => addNetwork(list, entry.trim())) ? list : undefined
})

/** Adds an address or network. Returns false if the text is neither. */
function addNetwork(list: BlockList, text: string): boolean {
  const [, address = '', digits] = /^([^/\s]+)(?:\/(\d{1,3}))?$/.exec(text) ?? []
  const bits = { 4: 32, 6: 128 }[isIP(address)]
  if (bits === undefined || address.includes('%') || Number(digits ?? 0) > bits) return false
  list.addSubnet(address, Number(digits ?? bits), bits === 32 ? 'ipv4' : 'ipv6')
  return true
}

export const hostList = typeOf(
  'host list',
  'names, addresses and networks, such as chat.internal, 10.0.0.0/8',
  (value) => {
    const hosts: HostList = { names: new Set(), networks: new BlockList() }
    for (const entry of value.split(',').map((text) => text.trim().toLowerCase())) {
      if (addNetwork(hosts.networks, entry)) continue
      // A name that ends with a number would be parsed as an address.
      if (!/^[\w-]+(\.[\w-]+)*$/.test(entry) || /(^|\.)\d+$/.test(entry)) return undefined
      hosts.names.add(entry)
    }
    return hosts
  },
)

const secondsOf: Record<string, number> = { s: 1, min: 60, h: 3_600 }
const expectedRate = 'a number of requests per second, minute or hour, such as 600/min'

export const rate = typeOf('rate', expectedRate, (value) => {
  const [, digits, unit = ''] = /^(\d{1,10})\/(s|min|h)$/.exec(value) ?? []
  const requests = Number(digits ?? 0)
  if (requests < 1 || requests > 1_000_000_000) return undefined
  return { requests, windowSeconds: secondsOf[unit] as number }
})

export const oneOf = (...allowed: string[]) =>
  typeOf('choice', `one of ${allowed.join(', ')}`, (value) => allowed.find((one) => one === value))

/** A URL of servers. Messages never show it: it can hold a password. */
const serverUrl = (protocols: string[], check: (urls: [URL, ...URL[]], name: string) => void): SettingType<string> => ({
  type: 'URL',
  secret: true,
  parse(value, name) {
    if (!protocols.some((protocol) => value.toLowerCase().startsWith(protocol))) {
      throw new Error(`${name} must be a URL that begins with ${protocols.join(' or ')}`)
    }
    const urls = splitHosts(value)
    if (
      urls.length === 0 ||
      urls.some(({ hostname, protocol }) => hostname === '' && (urls.length > 1 || protocol.startsWith('redis')))
    ) {
      throw new Error(
        `${name} must name hosts as host:port, separated by commas; escape "/", "?" and "#" in a password`,
      )
    }
    try {
      decodeURIComponent(value)
    } catch {
      throw new Error(`${name} must have every "%" in its user, password and name escaped as %25`)
    }
    check(urls as [URL, ...URL[]], name)
    return value
  },
})

export const redisUrl = serverUrl(
  ['redis://', 'rediss://', 'redis+sentinel://', 'rediss+sentinel://', 'redis+cluster://', 'rediss+cluster://'],
  (urls, name) => {
    const [{ protocol, pathname, search }] = urls
    const hasPath = /^\/./.test(pathname)
    if (!protocol.includes('+')) {
      if (urls.length > 1) throw new Error(`${name} names several hosts: use redis+sentinel:// or redis+cluster://`)
      if (hasPath && !/^\/\d+$/.test(pathname)) throw new Error(`${name} must end with the number of a database`)
      return
    }
    if (search) throw new Error(`${name} may have no parameters with ${protocol}//`)
    if (protocol.endsWith('+cluster:') && hasPath) {
      throw new Error(`${name} must end after its hosts: a Redis Cluster has no numbered databases`)
    }
    if (protocol.endsWith('+sentinel:') && (!hasPath || pathname.indexOf('/', 1) > 0)) {
      throw new Error(`${name} must end with the name of the master: redis+sentinel://h1:26379,h2:26379/NAME`)
    }
  },
)

export const publicUrl = typeOf(
  'URL',
  'a URL that begins with http:// or https://, with no user, query or fragment',
  (value) => {
    const { protocol = '', origin = '', pathname = '', href = '' } = URL.canParse(value) ? new URL(value) : {}
    const isPlain = ['http:', 'https:'].includes(protocol) && href === origin + pathname && !/[?#<>"]/.test(value)
    return isPlain ? href.replace(/\/+$/, '') : undefined
  },
  false,
)

export const file: SettingType<string> = {
  type: 'path',
  parse(value, name) {
    requireFile(value, `${name} names`)
    return value
  },
}

export function requireFile(path: string, whoNames: string): void {
  try {
    accessSync(path, constants.R_OK)
  } catch {
    throw new Error(`${whoNames} a file that cannot be read: ${path}`)
  }
  const stat = statSync(path)
  // A container gets one in place of a file that is not on its host.
  if (stat.isDirectory()) throw new Error(`${whoNames} a folder, not a file: ${path}`)
  if (stat.isFile() && stat.size === 0) throw new Error(`${whoNames} an empty file: ${path}`)
}

const sslModes = ['disable', 'require', 'verify-ca', 'verify-full', 'no-verify']

export const postgresUrl = serverUrl(['postgres://', 'postgresql://'], ([{ searchParams }], name) => {
  const mode = searchParams.get('sslmode')
  if (searchParams.has('ssl') || (mode !== null && !sslModes.includes(mode))) {
    throw new Error(`${name} may set TLS only with sslmode=, one of ${sslModes.join(', ')}`)
  }
  const root = searchParams.get('sslrootcert')
  if (root) requireFile(root, `${name} names as sslrootcert`)
})

const isKey = (value: string) => (/^psk_\w+$/.test(value) ? value : undefined)

export const apiKey = { ...typeOf('key', 'an API key, which begins with psk_', isKey, false), secret: true }

/** Masks a secret: a key wholly; in a URL the password, and parameters that could hold one. */
export function maskSecret(value: string): string {
  const urls = splitHosts(value)
  const [shown] = urls
  if (!shown) return '***'
  if (shown.password) shown.password = '***'
  for (const name of [...shown.searchParams.keys()]) {
    if (!['sslmode', 'sslrootcert'].includes(name)) shown.searchParams.set(name, '***')
  }
  const hosts = urls.map(({ host }) => host).join(',')
  return shown.href.replace(/^([^/]*\/\/(?:[^/?#]*@)?)[^/?#]*/, (_, before) => before + hosts)
}
