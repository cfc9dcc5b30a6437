// Writes what 1.0 promises into test/releases/1.0: its data, and its interface. Not after 1.0 is released.
import { requireUnreleased } from '../test/releases/freezing.ts'

requireUnreleased()
const command = [process.execPath, 'test/run.ts', 'test/releases']
const child = Bun.spawn(command, { env: { ...process.env, FREEZE: 'yes' }, stdio: ['ignore', 'inherit', 'inherit'] })
process.exit(await child.exited)
