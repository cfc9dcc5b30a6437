// Programs that the benchmark runs: each is ended with the benchmark, however that ends.
import { readFile } from 'node:fs/promises'

/** Runs a program to its end and returns what it printed; it is killed when the benchmark is interrupted. */
export async function runProgram(
  command: string[],
  { cwd, env, signal }: { cwd: string; env?: Record<string, string | undefined>; signal: AbortSignal },
): Promise<string> {
  signal.throwIfAborted()
  const child = Bun.spawn(command, {
    cwd,
    env: { ...basicEnvironment(), ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
    signal,
    killSignal: 'SIGKILL',
  })
  const [stdout, stderr, status] = await Promise.all([child.stdout.text(), child.stderr.text(), child.exited])
  signal.throwIfAborted()
  if (status !== 0) throw new Error(`${command.join(' ')} ended with ${status}: ${stderr}${stdout}`)
  return stdout
}

/** The environment without the developer's own settings, which would change what is measured. */
export function basicEnvironment(): Record<string, string | undefined> {
  const { PATH, HOME, TMPDIR } = process.env
  return { PATH, HOME, TMPDIR }
}

/** Resident memory as the kernel sees it: what the process says of itself leaves out part of it. */
export async function residentMb(pid: number): Promise<number> {
  const status = await readFile(`/proc/${pid}/status`, 'utf8')
  return Number(/^VmRSS:\s+(\d+) kB$/m.exec(status)?.[1]) / 1024
}

/** The processor time that the process has used so far, in user and kernel mode. */
export async function processorMs(pid: number): Promise<number> {
  const fields = (await readFile(`/proc/${pid}/stat`, 'utf8')).split(') ')[1]?.split(' ') ?? []
  // Clock ticks, of which Linux counts 100 a second on every architecture that we build for.
  return 10 * (Number(fields[11]) + Number(fields[12]))
}
