// Just enough of the Postgres wire protocol to carry it between the driver and the engine.

const SSL_REQUEST = 80877103
const GSS_REQUEST = 80877104
const CANCEL_REQUEST = 80877102

/** Bytes that can be transferred to another thread. */
export type Bytes = Uint8Array<ArrayBuffer>

export type Message = { kind: string; bytes: Buffer }

/** Splits what the driver writes into whole messages; an incomplete one waits for the next write. */
export class MessageReader {
  #rest: Buffer = Buffer.alloc(0)
  /** Whether a message has a letter in front of its length, 1 or 0: none has before the session has started. */
  #letter = 0

  read(chunk: Buffer): Message[] {
    const bytes = this.#rest.length > 0 ? Buffer.concat([this.#rest, chunk]) : chunk
    const messages: Message[] = []
    let at = 0
    while (bytes.length >= at + this.#letter + 4) {
      const end = at + this.#letter + bytes.readUInt32BE(at + this.#letter)
      if (end > bytes.length) break
      const message = bytes.subarray(at, end)
      const kind = this.#letter === 1 ? String.fromCharCode(message[0] ?? 0) : requestKind(message)
      if (kind === 'startup') this.#letter = 1
      messages.push({ kind, bytes: message })
      at = end
    }
    this.#rest = bytes.subarray(at)
    return messages
  }
}

function requestKind(message: Buffer): 'encryption' | 'cancel' | 'startup' {
  const code = message.readUInt32BE(4)
  if (code === SSL_REQUEST || code === GSS_REQUEST) return 'encryption'
  return code === CANCEL_REQUEST ? 'cancel' : 'startup'
}

/** Copies the chunks into one array, which can be transferred to another thread. */
export const joinBytes = (chunks: Uint8Array[]): Bytes => new Uint8Array(Buffer.concat(chunks))

/** A reply of the engine. */
export type Reply = {
  bytes: Buffer
  /** Ready for the next query and outside any transaction. */
  idle: boolean
  /** The first error, as sent. */
  error: Buffer | undefined
  /** The message of a FATAL or PANIC error, after which the engine cannot be used. */
  failure: string | undefined
}

export function parseReply(bytes: Buffer): Reply {
  const reply: Reply = { bytes, idle: false, error: undefined, failure: undefined }
  for (let at = 0; at + 5 <= bytes.length; ) {
    const end = at + 1 + bytes.readUInt32BE(at + 1)
    const kind = String.fromCharCode(bytes[at] ?? 0)
    if (kind === 'E') {
      reply.error ??= bytes.subarray(at, end)
      reply.failure ??= parseFailure(bytes.subarray(at + 5, end))
    }
    reply.idle = kind === 'Z' && bytes[at + 5] === 'I'.charCodeAt(0)
    at = end
  }
  return reply
}

/** Each field of an error is a letter and its value: V the severity, M the message. */
function parseFailure(error: Buffer): string | undefined {
  const fields = error.toString().split('\0')
  if (!fields.includes('VFATAL') && !fields.includes('VPANIC')) return undefined
  return fields.find((field) => field.startsWith('M'))?.slice(1)
}

export const sync = frame('S', '')

const readyForQuery = frame('Z', 'I')
const statementTimeout = frame(
  'E',
  ['SERROR', 'VERROR', 'C57014', 'Mcanceling statement due to statement timeout', '', ''].join('\0'),
)

/** What Postgres sends when it skips messages after a failure: each Sync, and each simple query, ends with this. */
export const replyToSkipped = (messages: Message[]): Buffer =>
  Buffer.concat(messages.filter(({ kind }) => kind === 'S' || kind === 'Q').map(() => readyForQuery))

/** What Postgres sends for messages whose statement took longer than `statement_timeout`. */
export const replyToTimedOut = (messages: Message[]): Buffer =>
  Buffer.concat([statementTimeout, replyToSkipped(messages)])

export const simpleQuery = (sql: string): Buffer => frame('Q', `${sql}\0`)

export const closeStatement = (name: string): Buffer => frame('C', `S${name}\0`)

/** The name a Parse message gives its statement; empty for the unnamed one. */
export const statementName = (parse: Buffer): string => parse.toString('utf8', 5, parse.indexOf(0, 5))

/** The settings that a startup message asks for, without those that only choose the database. */
export function startupSettings(startup: Buffer): Record<string, string> {
  const words = startup.toString('utf8', 8).split('\0')
  const settings: Record<string, string> = {}
  for (let i = 0; words[i]; i += 2) settings[words[i] ?? ''] = words[i + 1] ?? ''
  const { user, database, client_encoding, options, replication, ...rest } = settings
  return rest
}

function frame(kind: string, body: string): Buffer {
  const bytes = Buffer.alloc(5 + Buffer.byteLength(body))
  bytes.write(kind)
  bytes.writeUInt32BE(bytes.length - 1, 1)
  bytes.write(body, 5)
  return bytes
}
