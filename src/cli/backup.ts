import { compress, readBackup, writeFile } from '../backup/file.ts'
import { restoreBackup } from '../backup/restore.ts'
import { writeBackup } from '../backup/write.ts'
import { build, migrations } from '../platform.ts'
import { UsageError } from './arguments.ts'
import type { Command, Context } from './command.ts'
import { forCommands, onDatabase, workOn } from './database.ts'
import { writeOut } from './output.ts'

export const commands: Command[] = [
  {
    usage: 'backup FILE|-',
    description: 'writes everything in the database to a file, also while a server is running on it',
    ifInterrupted: 'no complete backup was written',
    check(args) {
      if (args.positional(0) === '-' && process.stdout.isTTY) {
        throw new UsageError('- is for a pipe or a file, not for a terminal')
      }
    },
    run: runBackup,
  },
  ...onDatabase([
    {
      usage: 'restore FILE|-',
      description: 'fills an empty database from a backup, all or nothing',
      database: 'any schema',
      readsFile: true,
      ifInterrupted: 'nothing was restored',
      verifyWith: 'orgs list',
      async run({ db, args, output, progress, input, interruption: { signal } }) {
        let share: number | undefined
        const onProgress = (read: number) => {
          share = read
        }
        const lines = readBackup(args.positional(0), { input, signal, onProgress })
        output.show(await restoreBackup(db, migrations, lines, (rows) => progress.count(rows, 'rows', share)))
      },
    },
  ]),
]

/**
 * The file is opened before the database and gets its name after that is closed: in between, a command of root's has only
 * the rights of the owner of the data directory. The opening of the database is awaited also when it is interrupted,
 * because closing removes the copy that it has made.
 */
async function runBackup(context: Context): Promise<void> {
  const { args, config, clock, output, progress } = context
  const { openSnapshot } = await import('../db/snapshot.ts')
  let rows = 0
  const fill = async (write: (text: string) => Promise<void>) =>
    workOn(context, await openSnapshot(config, forCommands), async (db) => {
      rows = await writeBackup(db, clock, build.version, write, (written, expected) =>
        progress.count(written, 'rows', expected && written / expected),
      )
    })
  const file = args.positional(0)
  if (file === '-') return void (await compress(fill, writeOut))
  const bytes = await writeFile(file, fill)
  output.show({ file, bytes, rows })
}
