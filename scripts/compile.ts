// Compiles the program into one file, as the build, the image and a release all do.
import { execFileSync } from 'node:child_process'
import { rm } from 'node:fs/promises'
import { makeButton, makeConsole } from './console.ts'
import { makeGuides } from './guides.ts'

export const targets = ['bun-linux-x64', 'bun-linux-arm64', 'bun-linux-x64-musl', 'bun-linux-arm64-musl'] as const
export type Target = (typeof targets)[number]

/** What is in the binary, as paths. Ends the process when it cannot be built; without a target it is for this platform. */
export async function compile(outfile: string, target?: Target): Promise<string[]> {
  const inConsole = await makeConsole()
  await makeButton()
  await makeGuides()
  const result = await Bun.build({
    // The thread of the embedded engine is started by its path, so it is a second entry point.
    entrypoints: ['src/main.ts', 'src/db/embedded_worker.ts'],
    // Whole names and no minifying: Elysia reads the source of its handlers.
    minify: false,
    sourcemap: 'linked',
    metafile: true,
    // Compiled ahead of time, it starts in a third of the time; for another platform that could not be tried.
    bytecode: target === undefined || target === `bun-${process.platform}-${process.arch}`,
    format: 'esm',
    // Only what is wanted is loaded.
    splitting: true,
    // What a package reads beside itself is not in the binary, and its folder would be another in each checkout.
    define: { BUILD_COMMIT: JSON.stringify(commit()), __dirname: '"/"' },
    compile: {
      outfile,
      // A file beside the binary must not change what it does.
      autoloadDotenv: false,
      autoloadBunfig: false,
      // Nor must a variable: with this the runtime runs only code of the binary, and does not preload a file
      // (BUN_OPTIONS) or open an inspector (BUN_INSPECT) before the program starts.
      execArgv: ['--disallow-code-generation-from-strings=strict'],
      ...(target ? { target } : {}),
    },
  })
  for (const message of result.logs) console.error(message)
  if (!result.success) process.exit(1)
  // The binary has them inside.
  for (const { kind, path } of result.outputs) if (kind === 'sourcemap') await rm(path)
  return [...Object.keys(result.metafile?.inputs ?? {}), ...inConsole]
}

function commit(): string {
  // For an archive, or an image without git.
  if (process.env.BUILD_COMMIT) return process.env.BUILD_COMMIT
  try {
    return execFileSync('git', ['rev-parse', '--short=12', 'HEAD'], { encoding: 'utf8', stdio: 'pipe' }).trim()
  } catch {
    return 'unknown'
  }
}
