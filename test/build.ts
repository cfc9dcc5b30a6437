import { join } from 'node:path'

export async function buildBinary(signal?: AbortSignal): Promise<void> {
  const child = Bun.spawn([process.execPath, '--no-env-file', 'scripts/build.ts'], {
    cwd: join(import.meta.dir, '..'),
    stdio: ['ignore', 'ignore', 'inherit'],
    ...(signal && { signal }),
  })
  if ((await child.exited) !== 0) throw new Error('The binary could not be built')
}
