import { readLines, writeFile, writeStandardOutput } from '../backup/file.ts'
import { restoreBackup } from '../backup/restore.ts'
import { writeBackup } from '../backup/write.ts'
import { build, migrations } from '../platform.ts'
import { type Command, UsageError } from './command.ts'
import { forCommands, forFirstCommands } from './database.ts'

export const backupCommands: Record<string, Command> = {
  backup: {
    usage: 'backup FILE|-',
    does: 'writes everything in the database to a file, also while a server is running on it',
    words: 1,
    check({ words: [file] }) {
      if (file === '-' && process.stdout.isTTY) throw new UsageError('- is for a pipe or a file, not for a terminal')
    },
    async run({ config, clock, typed, output }) {
      const file = typed.words[0] as string
      const { openSnapshot } = await import('../db/snapshot.ts')
      const db = await openSnapshot(config, forCommands)
      let rows = 0
      const fill = async (write: (text: string) => Promise<void>) => {
        rows = await writeBackup(db, clock, build.version, write)
      }
      try {
        if (file === '-') await writeStandardOutput(fill)
        else output.show({ file, bytes: await writeFile(file, fill), rows })
      } finally {
        await db.close()
      }
    },
  },
  restore: {
    usage: 'restore FILE|-',
    does: 'fills an empty database from a backup, all or nothing',
    words: 1,
    async run({ config, typed, output }) {
      const { openAny } = await import('../db/open.ts')
      const { db } = await openAny(config, forFirstCommands)
      try {
        output.show(await restoreBackup(db, migrations, readLines(typed.words[0] as string)))
      } finally {
        await db.close()
      }
    },
  },
}
