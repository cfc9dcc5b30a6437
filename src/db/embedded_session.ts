// The driver's side of the embedded engine: each connection is a stream, and all of them share one backend.
import { Duplex } from 'node:stream'
import { StoppedError } from './errors.ts'
import {
  type Bytes,
  closeStatement,
  joinBytes,
  type Message,
  MessageReader,
  parseReply,
  type Reply,
  replyToSkipped,
  replyToTimedOut,
  simpleQuery,
  startupSettings,
  statementName,
  sync,
} from './wire.ts'

/** The engine's one backend. A session keeps it from its first message until its transaction has ended. */
export class Backend {
  readonly sessions = new Set<Session>()
  /** Running clean-ups of what closed connections left in the engine. */
  readonly cleanups = new Set<Promise<void>>()
  #owner: Session | undefined
  /** Sessions get the backend first come, first served, so that none can keep another from it. */
  #waiting: { session: Session; resolve(isAcquired: boolean): void }[] = []
  #failure: Error | undefined

  constructor(
    private readonly execute: (messages: Bytes) => Promise<Bytes>,
    private readonly onFailure: (error: Error) => void,
  ) {}

  get failed(): boolean {
    return this.#failure !== undefined
  }

  /** Runs whole messages once the session has the backend; undefined when it did not get it within `waitMs`. */
  async run(session: Session, messages: Uint8Array[], waitMs = 0): Promise<Reply | undefined> {
    if (this.#owner !== session && !(await this.#acquire(session, waitMs))) return undefined
    // This is checked after the wait, because the previous session may have crashed the backend.
    if (this.#failure) throw this.#failure
    const output = await this.execute(joinBytes(messages)).catch((error) => {
      throw this.fail(error.message)
    })
    const reply = parseReply(Buffer.from(output.buffer, output.byteOffset, output.length))
    if (reply.failure) throw this.fail(reply.failure)
    // A connection that was closed in this very moment has already released it.
    if (reply.idle && this.#owner === session) this.#release()
    return reply
  }

  /** Drops what a closed connection still waited to run. */
  forget(session: Session): void {
    this.#waiting = this.#waiting.filter((waiter) => waiter.session !== session)
  }

  /** Ends every connection, and resolves once nothing of them is left in the engine. */
  async endSessions(): Promise<void> {
    for (const session of this.sessions) session.destroy()
    await Promise.all(this.cleanups)
  }

  /** Stops using the engine: after a FATAL or a PANIC its memory cannot be trusted. Only a restart helps. */
  fail(reason: string): Error {
    if (this.#failure) return this.#failure
    const failure = new StoppedError(`the embedded database has stopped: ${reason}`)
    this.#failure = failure
    for (const session of this.sessions) session.destroy(failure)
    for (const { resolve } of this.#waiting.splice(0)) resolve(true)
    this.onFailure(failure)
    return failure
  }

  /** Waits for the backend; without a limit when `waitMs` is zero. */
  async #acquire(session: Session, waitMs: number): Promise<boolean> {
    if (!this.#owner || this.#failure) {
      this.#owner = session
      return true
    }
    const { promise, resolve } = Promise.withResolvers<boolean>()
    const waiter = { session, resolve }
    this.#waiting.push(waiter)
    if (waitMs === 0) return promise
    const timer = setTimeout(() => {
      this.#waiting = this.#waiting.filter((one) => one !== waiter)
      resolve(false)
    }, waitMs)
    const isAcquired = await promise
    clearTimeout(timer)
    return isAcquired
  }

  #release(): void {
    const next = this.#waiting.shift()
    this.#owner = next?.session
    next?.resolve(true)
  }
}

/** One connection of the driver, in the shape of a socket. */
export class Session extends Duplex {
  readonly #reader = new MessageReader()
  readonly #statements = new Set<string>()
  #started = false
  /** How long a statement may wait for the backend. The engine itself has no timers and ignores the setting. */
  #statementTimeoutMs = 0
  /** After a failure, Postgres and so this session ignores what was sent behind it, up to the next Sync. */
  #skipsToSync = false

  constructor(private readonly backend: Backend) {
    super()
    backend.sessions.add(this)
  }

  /** The driver reads it before it sends a Terminate message. */
  get readyState(): 'open' | 'closed' {
    return this.destroyed ? 'closed' : 'open'
  }

  override _read(): void {}

  override _write(chunk: Buffer, _encoding: string, done: (error?: Error) => void): void {
    this.#receive(chunk).then(() => done(), done)
  }

  override _final(done: () => void): void {
    done()
    this.destroy()
  }

  override _destroy(error: Error | null, done: (error: Error | null) => void): void {
    this.backend.sessions.delete(this)
    if (this.#started) {
      const cleanup = this.#cleanUp().finally(() => this.backend.cleanups.delete(cleanup))
      this.backend.cleanups.add(cleanup)
    }
    done(error)
  }

  async #receive(chunk: Buffer): Promise<void> {
    const batch: Message[] = []
    for (const message of this.#reader.read(chunk)) {
      const { kind, bytes } = message
      if (kind === 'encryption') this.push('N')
      // A query runs to its end before the next message is read, so there is never one to cancel.
      else if (kind === 'cancel') this.destroy()
      else if (kind === 'startup') await this.#start(bytes)
      else if (kind !== 'X') batch.push(message)
      if (kind === 'P') this.#statements.add(statementName(bytes))
    }
    if (batch.length > 0) this.push(await this.#run(batch))
  }

  async #run(batch: Message[]): Promise<Buffer> {
    if (this.#skipsToSync) {
      const end = batch.findIndex(({ kind }) => kind === 'S') + 1
      this.#skipsToSync = end === 0
      const skipped = batch.splice(0, end || batch.length)
      const reply = replyToSkipped(skipped)
      return batch.length > 0 ? Buffer.concat([reply, await this.#run(batch)]) : reply
    }
    const messages = batch.map(({ bytes }) => bytes)
    const reply = await this.backend.run(this, messages, this.#statementTimeoutMs)
    if (reply) return reply.bytes
    // Nothing of the batch has run or will run.
    this.#skipsToSync = !['S', 'Q'].includes(batch.at(-1)?.kind ?? '')
    return replyToTimedOut(batch)
  }

  /** The engine's backend is running already and reads no settings from a startup message, so they are set here. */
  async #start(startup: Buffer): Promise<void> {
    this.#started = true
    const welcome = (await this.backend.run(this, [startup])) as Reply
    const { statement_timeout = '0', ...settings } = startupSettings(startup)
    this.#statementTimeoutMs = Number(statement_timeout)
    const calls = Object.entries(settings).map((pair) => `set_config(${pair.map(quote).join()}, false)`)
    const applied = calls.length > 0 ? await this.backend.run(this, [simpleQuery(`select ${calls.join()}`)]) : welcome
    this.push(applied?.error ?? welcome.bytes)
    if (applied?.error) this.destroy()
  }

  async #cleanUp(): Promise<void> {
    this.backend.forget(this)
    const messages = [sync, simpleQuery('rollback'), simpleQuery('select pg_advisory_unlock_all()')]
    messages.push(...[...this.#statements].map(closeStatement), sync)
    // The backend has already reported a failure to every session.
    await this.backend.run(this, messages).catch(() => {})
  }
}

const quote = (text: string): string => `'${text.replaceAll("'", "''")}'`
