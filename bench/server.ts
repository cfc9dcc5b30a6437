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

/** Reads on to the end: a full pipe would stop the service. */
async function readLog(stream: ReadableStream<Uint8Array>, onServing: (url: string) => void): Promise<void> {
  const decoder = new TextDecoder()
  let rest = ''
  for await (const chunk of stream) {
    const lines = (rest + decoder.decode(chunk, { stream: true })).split('\n')
    rest = lines.pop() ?? ''
    for (const line of lines) {
      const { msg, url } = JSON.parse(line)
      if (msg === 'serving') onServing(url)
    }
  }
}
