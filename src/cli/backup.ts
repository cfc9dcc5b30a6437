import { compress, readBackup, writeFile } from '../backup/file.ts'
import { restoreBackup } from '../backup/restore.ts'
import { writeBackup } from '../backup/write.ts'
import { readKnownVersion } from '../db/migrations.ts'
import { requireFileName } from '../lib/atomic_file.ts'
import type { Input } from '../lib/input.ts'
import { counted } from '../lib/texts.ts'
import { build, migrations } from '../platform.ts'
import { type Command, UsageError } from './command.ts'
import { forCommands, onDatabase, workOn } from './database.ts'
import { writeOut } from './output.ts'

export const commands: Command[] = [
  {
    usage: 'backup FILE|-',
    description: 'writes everything in the database to a file, also while a server is running on it',
    check(args) {
      if (args.positional(0) === '-' && process.stdout.isTTY) {
        throw new UsageError('- is for a pipe or a file, not for a terminal')
      }
    },
    async run(context) {
      const { args, config, clock, output, progress } = context
      const file = args.positional(0)
      if (file !== '-') await requireFileName(file)
      const { openSnapshot } = await import('../db/snapshot.ts')
      // Awaited even when interrupted, because closing the database removes the copy that was made.
      await workOn(context, await openSnapshot(config, forCommands), async (db) => {
        await readKnownVersion(db.sql, migrations)
        let rows = 0
        const fill = async (write: (text: string) => Promise<void>) => {
          rows = await writeBackup(db, clock, build.version, write, (written, expected) =>
            progress.count(written, 'rows', expected && written / expected),
          )
        }
        if (file === '-') return void (await compress(fill, writeOut))
        const bytes = await writeFile(file, fill)
        output.show({ file, bytes, rows })
      })
    },
  },
  ...onDatabase([
    {
      usage: 'restore FILE|-',
      description: 'fills an empty database from a backup, all or nothing',
      database: 'any schema',
      readsFile: true,
      async run({ db, args, output, progress, input, interruption: { signal } }) {
        let share: number | undefined
        const onProgress = (read: number) => {
          share = read
        }
        const lines = readBackup(args.positional(0), input as Input, { signal, onProgress })
        const restored = await restoreBackup(db, migrations, lines, (rows) => progress.count(rows, 'rows', share))
        const { disabled, ...shown } = restored
        output.show(shown)
        if (disabled === 0) return
        output.say(
          `${counted(disabled, 'endpoint is', 'endpoints are')} disabled: endpoints update ENDPOINT --enabled true`,
        )
      },
    },
  ]),
]
