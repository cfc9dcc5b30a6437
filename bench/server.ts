import { basicEnvironment } from './processes.ts'

export type Server = {
  url: string
  pid: number
  stop(): Promise<void>
}

type Launch = { command: string[]; env: Record<string, string>; cwd: string; signal: AbortSignal }

const startMs = 20_000
const stopMs = 20_000

/** Starts a service that logs JSON lines, and waits for the one that says where it serves. */
export async function startServer({ command, env, cwd, signal }: Launch): Promise<Server> {
  signal.throwIfAborted()
  const child = Bun.spawn(command, {
    cwd,
    // Port 0, because whichever other is free now may be taken in a moment.
    env: { ...basicEnvironment(), PORT: '0', ...env },
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  const stop = async () => {
    child.kill('SIGTERM')
    const lastResort = setTimeout(() => child.kill('SIGKILL'), stopMs)
    await child.exited
    clearTimeout(lastResort)
  }
  const serving = Promise.withResolvers<string>()
  readLog(child.stdout, serving.resolve).finally(() => serving.reject(new Error(`${command.join(' ')} did not serve`)))
  const tooLate = setTimeout(() => child.kill('SIGKILL'), startMs)
  try {
    return { url: await serving.promise, pid: child.pid, stop }
  } catch (error) {
    await stop()
    throw error
  } finally {
    clearTimeout(tooLate)
  }
}

/** Reads on to the end, as a full pipe would stop the service; but only up to what it looks for does it read lines. */
async function readLog(stream: ReadableStream<Uint8Array>, onServing: (url: string) => void): Promise<void> {
  const decoder = new TextDecoder()
  let text = ''
  let isServing = false
  for await (const chunk of stream) {
    if (isServing) continue
    text += decoder.decode(chunk, { stream: true })
    const lines = text.split('\n').slice(0, -1)
    const serving = lines.map((line) => JSON.parse(line)).find(({ msg }) => msg === 'serving')
    if (serving) onServing(serving.url)
    isServing = serving !== undefined
  }
}
