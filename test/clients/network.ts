// A network that fails, and both clients behind it: the same calls, the same answers.
import { expect } from 'bun:test'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { createClient, PromptSignalsError } from '../../clients/typescript/src/index.ts'
import { createProxy, type Relay } from '../proxy.ts'
import { closeAfterTest } from '../use.ts'

export const root = join(import.meta.dir, '../..')

export type Fault =
  | 'none'
  | 'lost request'
  | 'late request'
  | 'delayed request'
  | 'sent twice'
  | 'unavailable'
  | 'no answer'
  | 'lost answer'
  | 'cut answer'
  | 'stalled answer'
  | 'slow answer'

/** For the client to read the first half of an answer; shorter than the time in which it waits for the rest. */
const ANSWER_PAUSE_MS = 500

/** Where the body of a message begins; 0 while its head is not complete. */
const bodyOf = (message: Buffer): number => message.indexOf('\r\n\r\n') + 4

function isComplete(message: Buffer): boolean {
  const head = message.toString('latin1', 0, bodyOf(message))
  if (/transfer-encoding: *chunked/i.test(head)) return message.subarray(-5).toString() === '0\r\n\r\n'
  return (
    bodyOf(message) > 3 && message.length >= bodyOf(message) + Number(/content-length: *(\d+)/i.exec(head)?.[1] ?? 0)
  )
}

/** The service behind a network that does this to one request after the other, then nothing. */
export async function createNetwork(url: string, faults: Iterator<Fault>) {
  const requests: string[] = []
  const copies: Promise<unknown>[] = []
  let late: Buffer[] = []
  const relay: Relay = (guest, host, dial) => {
    let fault: Fault = 'none'
    let [request, answer] = [Buffer.alloc(0), Buffer.alloc(0)]
    const sendCopy = (whole: Buffer) => {
      const socket = dial()
      socket.write(whole)
      copies.push(once(socket, 'data').then(() => socket.destroy()))
    }
    guest.on('data', (chunk) => {
      request = Buffer.concat([request, chunk as Buffer])
      if (!isComplete(request)) return
      // Half of a compressed answer has no line, and a closed connection does not stall.
      const text = request.toString('latin1').replace(/^(accept-encoding|connection):.*\r\n/gim, '')
      const whole = Buffer.from(text, 'latin1')
      request = answer = Buffer.alloc(0)
      requests.push(whole.toString())
      fault = faults.next().value ?? 'none'
      // Together with the client's next attempt.
      for (const one of late) sendCopy(one)
      late = fault === 'late request' ? [whole] : []
      if (fault === 'lost request' || fault === 'late request') guest.resetAndDestroy()
      else if (fault === 'unavailable') guest.end('HTTP/1.1 502 Bad Gateway\r\nContent-Length: 3\r\n\r\n<p>')
      else if (fault === 'delayed request') setTimeout(() => host.write(whole), 100)
      else host.write(whole)
      if (fault === 'sent twice') sendCopy(whole)
    })
    host.on('data', (chunk) => {
      if (!fault.endsWith('answer')) return guest.write(chunk as Buffer)
      answer = Buffer.concat([answer, chunk as Buffer])
      if (!isComplete(answer)) return
      const middle = (bodyOf(answer) + answer.length) >> 1
      const [half, rest] = [answer.subarray(0, middle), answer.subarray(middle)]
      if (fault === 'lost answer') guest.resetAndDestroy()
      else if (fault !== 'no answer') guest.write(half)
      if (fault === 'cut answer') setTimeout(() => guest.end(), ANSWER_PAUSE_MS)
      if (fault === 'slow answer') setTimeout(() => guest.write(rest), ANSWER_PAUSE_MS)
    })
  }
  const proxy = await closeAfterTest(createProxy(url, relay))
  const keys = () => requests.map((one) => /^idempotency-key: *(.*)\r$/im.exec(one)?.[1])
  return { url: proxy.url, requests, keys, settled: () => Promise.all(copies) }
}

export type Given = { url: string; key: string; timeout?: number; retries?: number }

// biome-ignore lint/suspicious/noExplicitAny: a test looks at answers of every shape
type Call = (given: Given, name: string, ...args: any[]) => Promise<any>

const optionsOf = ({ url, key, timeout = 5, retries = 3 }: Given) => ({ url, key, timeout, retries })

/** Runs programs, a line of JSON each, and answers with what they show and complain of. */
const interpreter = `
import io, json, sys, traceback
import prompt_signals
for line in sys.stdin:
  given, program = json.loads(line)
  shown, sys.stderr = [], io.StringIO()
  try:
    exec(program, {**vars(prompt_signals), "given": given, "client": prompt_signals.Client(**given), "show": shown.append})
  except Exception:
    traceback.print_exc()
  print(json.dumps([shown, sys.stderr.getvalue()]), flush=True)`

let running: { child: ReturnType<typeof spawn>; answers: AsyncIterator<string> } | undefined

function startPython() {
  const env = { ...process.env, PYTHONDONTWRITEBYTECODE: '1' }
  const child = spawn('python3', ['-W', 'error', '-c', interpreter], { cwd: join(root, 'clients/python'), env })
  return { child, answers: createInterface({ input: child.stdout })[Symbol.asyncIterator]() }
}

/** Runs a Python program with `client`, which was created as `given`; returns what it gives to `show`. */
export async function python(program: string, given: Given): Promise<unknown> {
  running ??= startPython()
  running.child.stdin?.write(`${JSON.stringify([optionsOf(given), program])}\n`)
  const [[shown], errors] = JSON.parse((await running.answers.next()).value)
  expect(errors).toBe('')
  return shown
}

/** One call of a client, by its name in Python; an error is an answer too, after it was sent from one process to another. */
const callPython: Call = (given, name, ...args) =>
  python(
    `
import pickle
try:
  args = json.loads(${JSON.stringify(JSON.stringify(args))})
  fields = args.pop() if "${name}".startswith(("create_", "export")) and isinstance(args[-1], dict) else {}
  answer = client.${name}(*args, **fields)
  show(answer if isinstance(answer, (dict, list, bool)) else list(answer))
except PromptSignalsError as raised:
  error = pickle.loads(pickle.dumps(raised))
  names = ["status", "code", "request_id", "details", "limited_by", "resets_at"]
  show({"message": str(error), **{name: getattr(error, name) for name in names}})`,
    given,
  )

const callTypeScript: Call = async (given, name, ...args) => {
  const { timeout, ...options } = optionsOf(given)
  const { signals, history, usage, keys, prompts } = createClient({ ...options, timeoutMs: timeout * 1_000 })
  const [prompt, value, metadata, commit, , subject] = args
  const calls: Record<string, () => unknown> = {
    record: () => signals.record(prompt, value, { metadata, ...(commit && { commit }), ...(subject && { subject }) }),
    record_many: () => {
      const given = value.map(({ idempotency_key: idempotencyKey, ...one }: Record<string, string>) => ({
        ...one,
        idempotencyKey,
      }))
      return signals.recordMany(prompt, given)
    },
    withdraw: () => signals.withdraw(prompt, value),
    signals: () => Array.fromAsync(signals.list(prompt)),
    export: () => Array.fromAsync(signals.export(prompt, value)),
    history: () => Array.fromAsync(history.list(prompt)),
    usage: () => usage(),
    create_key: () => keys.create(prompt),
    create_prompt: () => prompts.create(prompt),
    rotate_key: () => keys.rotate(prompt),
  }
  try {
    return await calls[name]?.()
  } catch (error) {
    if (!(error instanceof PromptSignalsError)) throw error
    const { message, status, code, requestId, details, limitedBy, resetsAt } = error
    const resets_at = resetsAt?.toISOString()
    return { message, status, code, request_id: requestId, details, limited_by: limitedBy, resets_at }
  }
}

export const clients: [string, Call][] = [
  ['TypeScript', callTypeScript],
  ['Python', callPython],
]
