// Compiles the program into one file: dist/prompt-signals for this platform, or, with
// --target bun-linux-x64 and the like, dist/prompt-signals-linux-x64 for another.
import { parseArgs } from 'node:util'
import { compile, type Target, targets } from './compile.ts'

const { values } = parseArgs({ options: { target: { type: 'string' } } })
if (values.target !== undefined && !targets.includes(values.target as Target)) {
  console.error(`--target must be one of ${targets.join(', ')}`)
  process.exit(2)
}

const outfile = `dist/prompt-signals${values.target?.replace('bun', '') ?? ''}`
await compile(outfile, values.target as Target | undefined)
console.log(outfile)
