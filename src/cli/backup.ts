import { readBackup, writeFile, writeStandardOutput } from '../backup/file.ts'
import { restoreBackup } from '../backup/restore.ts'
import { writeBackup } from '../backup/write.ts'
import { openInput } from '../lib/input.ts'
import { build, migrations } from '../platform.ts'
import { type Command, UsageError } from './command.ts'
import { forCommands, forFirstCommands, withDatabase } from './database.ts'
import { untilInterrupted } from './interruption.ts'
import { createProgress } from './progress.ts'

export const backupCommands: Record<string, Command> = {
  backup: {
    usage: 'backup FILE|-',
    does: 'writes everything in the database to a file, also while a server is running on it',
    words: 1,
    ifInterrupted: 'no complete backup was written',
    check({ words: [file] }) {
      if (file === '-' && process.stdout.isTTY) throw new UsageError('- is for a pipe or a file, not for a terminal')
    },
    async run(context) {
      const file = context.typed.words[0] as string
      const { openSnapshot } = await import('../db/snapshot.ts')
      const progress = createProgress()
      let rows = 0
      // The file is opened before the database and gets its name after that is closed: in between, a command of root's
      // has only the rights of the owner of the data directory. The opening of the database is awaited also when it is
      // interrupted, because closing removes the copy that it has made.
      const fill = (write: (text: string) => Promise<void>) =>
        withDatabase(context, openSnapshot(context.config, forCommands), async (db) => {
          rows = await writeBackup(db, context.clock, build.version, write, (written, expected) =>
            progress.count(written, 'rows', expected && written / expected),
          )
        })
      try {
        if (file === '-') return await writeStandardOutput(fill)
        const bytes = await writeFile(file, fill)
        progress.end()
        context.output.show({ file, bytes, rows })
      } finally {
        progress.end()
      }
    },
  },
  restore: {
    usage: 'restore FILE|-',
    does: 'fills an empty database from a backup, all or nothing',
    words: 1,
    ifInterrupted: 'nothing was restored',
    verifyWith: 'orgs list',
    async run(context) {
      const { config, typed, output, interruption } = context
      const [file] = typed.words as [string]
      const input = await openInput(file)
      const { openAny } = await import('../db/open.ts')
      const opening = openAny(config, forFirstCommands).then(({ db }) => db)
      await withDatabase(context, untilInterrupted(interruption, opening, 0), async (db) => {
        const progress = createProgress()
        let share: number | undefined
        const onProgress = (read: number) => {
          share = read
        }
        const lines = readBackup(file, { input, signal: interruption.signal, onProgress })
        try {
          const restored = await restoreBackup(db, migrations, lines, (rows) => progress.count(rows, 'rows', share))
          progress.end()
          output.show(restored)
        } finally {
          progress.end()
        }
      })
    },
  },
}
