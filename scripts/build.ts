// Compiles the program into one file: dist/prompt-signals for this platform, or, with
// --target bun-linux-x64 and the like, dist/prompt-signals-linux-x64 for another.
import { execFileSync } from 'node:child_process'
import { parseArgs } from 'node:util'

const { values } = parseArgs({ options: { target: { type: 'string' } } })
const targets = ['bun-linux-x64', 'bun-linux-arm64']
if (values.target !== undefined && !targets.includes(values.target)) {
  console.error(`--target must be one of ${targets.join(', ')}`)
  process.exit(2)
}

const outfile = `dist/prompt-signals${values.target?.replace('bun', '') ?? ''}`

const result = await Bun.build({
  entrypoints: ['src/main.ts'],
  // Whole names and no minifying: Elysia reads the source of its handlers.
  minify: false,
  sourcemap: 'linked',
  define: { BUILD_COMMIT: JSON.stringify(commit()) },
  compile: {
    outfile,
    // A file beside the binary must not change what it does.
    autoloadDotenv: false,
    autoloadBunfig: false,
    ...(values.target ? { target: values.target as Bun.Build.CompileTarget } : {}),
  },
})
for (const message of result.logs) console.error(message)
if (!result.success) process.exit(1)
console.log(outfile)

function commit(): string {
  try {
    return execFileSync('git', ['rev-parse', '--short=12', 'HEAD'], { encoding: 'utf8', stdio: 'pipe' }).trim()
  } catch {
    // Built from an archive, or in an image without git.
    return process.env['BUILD_COMMIT'] ?? 'unknown'
  }
}
