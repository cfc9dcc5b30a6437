// Runs git on an untrusted repository: runs no program that its configuration names, and fetches nothing.
import { spawn } from 'node:child_process'
import { DeadlineError, within } from '../lib/deadline.ts'

type Environment = Record<string, string | undefined>

export type Git = ReturnType<typeof createGit>

/** Says in one line what git has written to standard error. */
class GitError extends Error {}

const maxErrorLength = 2_000
/** Far longer than git computes before it writes the next part of its output, even in a huge repository. */
const defaultSilenceMs = 120_000

const options = [
  '--no-pager',
  '--no-replace-objects',
  ...['core.fsmonitor=false', 'core.hooksPath=/dev/null', 'protocol.allow=never', 'mailmap.file='].flatMap((set) => [
    '-c',
    set,
  ]),
]

/** These win over the settings of the caller and of the repository. */
const fixed: Environment = {
  LC_ALL: 'C',
  GIT_TERMINAL_PROMPT: '0',
  GIT_OPTIONAL_LOCKS: '0',
  GIT_NO_LAZY_FETCH: '1',
  GIT_ALLOW_PROTOCOL: 'none',
  // A path that cannot exist: grafts would cut the history, and git complains about a file that is there.
  GIT_GRAFT_FILE: '/dev/null/none',
}

/** Stops a command that writes nothing for `silenceMs`: a file that it reads may be a pipe. */
export function createGit(folder: string, environment: Environment, signal: AbortSignal, silenceMs = defaultSilenceMs) {
  const env = { ...environment, ...fixed }

  /** Streams a command's output while it writes `input` to the command. */
  async function* stream(args: string[], input = ''): AsyncIterable<Buffer> {
    signal.throwIfAborted()
    const child = spawn('git', ['-C', folder, ...options, ...args], { env, stdio: ['pipe', 'pipe', 'pipe'], signal })
    const ended = new Promise<number | null>((resolve, reject) => {
      child.once('error', (error) => {
        const isMissing = (error as NodeJS.ErrnoException).code === 'ENOENT'
        reject(isMissing ? new Error('The program git is needed, and is not on the PATH. Install git.') : error)
      })
      child.once('close', resolve)
    })
    // Awaited below. Without this, a failure before that would be an unhandled rejection.
    ended.catch(() => {})
    let complaint = ''
    child.stderr.on('data', (text) => {
      if (complaint.length < maxErrorLength) complaint += text
    })
    // A program that exits early does not read the rest of its input.
    child.stdin.on('error', () => {}).end(input)
    const chunks = (child.stdout as AsyncIterable<Buffer>)[Symbol.asyncIterator]()
    try {
      for (;;) {
        const next = await within(silenceMs, chunks.next())
        if (next.done) break
        yield next.value
      }
      const status = await ended
      if (status !== 0) throw new GitError(explain(complaint, folder))
    } catch (error) {
      if (error instanceof DeadlineError) {
        throw new Error(`git wrote nothing for ${silenceMs / 1_000} seconds, and was stopped.`)
      }
      // If the program could not be started, this says why.
      await ended
      throw error
    } finally {
      child.kill()
    }
  }

  return {
    stream,
    /** Returns a command's output, or undefined if its exit status is not 0 and that is an answer. */
    async ask(args: string[], isAnswer = (_complaint: string) => true): Promise<string | undefined> {
      try {
        let text = ''
        for await (const chunk of stream(args)) text += chunk
        return text.trimEnd()
      } catch (error) {
        if (error instanceof GitError && isAnswer(error.message)) return undefined
        throw error
      }
    },
  }
}

function explain(complaint: string, folder: string): string {
  if (complaint.includes('dubious ownership')) {
    return (
      `git does not trust ${folder}, because somebody else owns it. If you do, run: ` +
      `git config --global --add safe.directory ${complaint.match(/safe\.directory (.+)/)?.[1] ?? folder}`
    )
  }
  const [first = ''] = complaint
    .replace(/^(fatal|error): /, '')
    .replace(':\n\t', ': ')
    .split('\n')
  return `git failed: ${first || 'it said nothing'}`
}

/** Longer than any path or header line that git writes. The rest of a huge commit message is dropped. */
const maxPartLength = 64 * 1024

/** Splits a stream at a character, into text of one character per byte. Truncates long parts. */
export async function* splitAt(end: '\0' | '\n', chunks: AsyncIterable<Buffer>) {
  let rest = ''
  for await (const chunk of chunks) {
    const parts = (rest + chunk.toString('latin1')).split(end)
    rest = (parts.pop() as string).slice(0, maxPartLength)
    yield parts
  }
}

/** The name of an object, in SHA-1 or SHA-256. */
export const fullSha = /^[0-9a-f]{40,64}$/

/** Decodes UTF-8 from text of one character per byte. Invalid bytes become U+FFFD. */
export const decode = (bytes: string): string =>
  // biome-ignore lint/suspicious/noControlCharactersInRegex: matches everything but ASCII
  /[^\x00-\x7f]/.test(bytes) ? Buffer.from(bytes, 'latin1').toString('utf8') : bytes

/** Encodes text as UTF-8, one character per byte. */
export const encode = (text: string): string => Buffer.from(text, 'utf8').toString('latin1')
