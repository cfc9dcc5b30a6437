// The driver's side of the embedded engine: each connection is a stream, and they take turns on one backend.
import { Duplex } from 'node:stream'
import {
  closeStatement,
  MessageReader,
  type Reply,
  readReply,
  simpleQuery,
  startupSettings,
  statementName,
  sync,
} from './wire.ts'

/** The engine's one backend. A session keeps it from its first message until its transaction has ended. */
export class Backend {
  readonly sessions = new Set<Session>()
  #owner: Session | undefined
  #waiting: { session: Session; grant: () => void }[] = []
  #failure: Error | undefined

  constructor(
    private readonly execute: (messages: Buffer) => Promise<Buffer>,
    private readonly onFailure: (error: Error) => void,
  ) {}

  get failed(): boolean {
    return this.#failure !== undefined
  }

  /** Runs whole messages when it is the session's turn. */
  async run(session: Session, messages: Buffer): Promise<Reply> {
    if (this.#owner !== session) await this.#takeTurn(session)
    // Asked after the wait: the one who had the turn may have brought the backend down.
    if (this.#failure) throw this.#failure
    const answer = await this.execute(messages).catch((error) => {
      throw this.#fail(String(error))
    })
    const reply = readReply(answer)
    if (reply.failure) throw this.#fail(reply.failure)
    for (const other of this.sessions) if (other !== session) other.notify(reply.notifications)
    // A connection torn down in this very moment has already passed it on.
    if (reply.idle && this.#owner === session) this.#passTurn()
    return reply
  }

  /** Drops what a closed connection still waited to run. */
  forget(session: Session): void {
    this.#waiting = this.#waiting.filter((waiting) => waiting.session !== session)
  }

  #takeTurn(session: Session): Promise<void> | undefined {
    if (this.#owner && !this.#failure) return new Promise((grant) => this.#waiting.push({ session, grant }))
    this.#owner = session
    return undefined
  }

  #passTurn(): void {
    const next = this.#waiting.shift()
    this.#owner = next?.session
    next?.grant()
  }

  /** After a FATAL or a PANIC the backend's memory means nothing; only opening the files again helps. */
  #fail(reason: string): Error {
    const failure = new Error(`the embedded database has stopped: ${reason}`)
    this.#failure = failure
    for (const session of this.sessions) session.destroy(failure)
    for (const { grant } of this.#waiting.splice(0)) grant()
    this.onFailure(failure)
    return failure
  }
}

/** One connection of the driver, in the shape of a socket. */
export class Session extends Duplex {
  /** Settled once nothing of a closed connection is left in the engine. */
  cleaned: Promise<void> = Promise.resolve()
  readonly #reader = new MessageReader()
  readonly #statements = new Set<string>()
  #started = false

  constructor(
    private readonly backend: Backend,
    readonly role: 'client' | 'housekeeping',
  ) {
    super()
    backend.sessions.add(this)
  }

  /** The driver looks at it before it says goodbye. */
  get readyState(): 'open' | 'closed' {
    return this.destroyed ? 'closed' : 'open'
  }

  /** Passes on what the backend told somebody else: it has one list of listeners for all its sessions. */
  notify(notifications: Buffer[]): void {
    for (const bytes of notifications) this.push(bytes)
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
    if (this.#started) this.cleaned = this.#cleanUp()
    done(error)
  }

  async #receive(chunk: Buffer): Promise<void> {
    const batch: Buffer[] = []
    for (const { kind, bytes } of this.#reader.read(chunk)) {
      if (kind === 'encryption') this.push('N')
      // A query runs to its end before anything else is heard, so there is never one to cancel.
      else if (kind === 'cancel') this.destroy()
      else if (kind === 'startup') await this.#start(bytes)
      else if (kind !== 'X') batch.push(bytes)
      if (kind === 'P') this.#statements.add(statementName(bytes))
    }
    if (batch.length > 0) this.push((await this.backend.run(this, Buffer.concat(batch))).bytes)
  }

  /** The engine's backend is long up by now and no longer reads settings at a start, so they are set by hand. */
  async #start(startup: Buffer): Promise<void> {
    this.#started = true
    const welcome = await this.backend.run(this, startup)
    const settings = startupSettings(startup).map((pair) => `set_config(${pair.map(quote).join()}, false)`)
    const applied =
      settings.length > 0 ? await this.backend.run(this, simpleQuery(`select ${settings.join()}`)) : welcome
    this.push(applied.error ?? welcome.bytes)
    if (applied.error) this.destroy()
  }

  async #cleanUp(): Promise<void> {
    this.backend.forget(this)
    const leave = [sync, simpleQuery('rollback'), simpleQuery('select pg_advisory_unlock_all()')]
    // Settings are the backend's, not the session's: they are only reset when that takes nothing from another.
    const others = [...this.backend.sessions].filter((session) => session.role === 'client')
    if (others.length === 0) leave.push(simpleQuery('discard all'))
    else leave.push(...[...this.#statements].map(closeStatement), sync)
    // A failure here has already been reported to everyone by the backend.
    await this.backend.run(this, Buffer.concat(leave)).catch(() => {})
  }
}

const quote = (text: string): string => `'${text.replaceAll("'", "''")}'`
