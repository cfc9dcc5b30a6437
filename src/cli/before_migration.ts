import { readdir, rm, stat } from 'node:fs/promises'
import { basename, join, resolve } from 'node:path'
import { writeFile } from '../backup/file.ts'
import { writeBackup } from '../backup/write.ts'
import type { BackUp } from '../db/migrations.ts'
import { build } from '../platform.ts'
import type { Context } from './command.ts'

/**
 * Backs the embedded database up into its folder, as nobody else has done so when a new binary starts on it. The newest
 * backup before this one stays too.
 */
export const backUpFor =
  ({ config: { DATA_DIR }, clock, warn }: Context): BackUp =>
  async (db, version) => {
    const file = join(DATA_DIR, `before-${version + 1}.backup`)
    warn(`Backing the database up to ${resolve(file)} before it is migrated.`)
    await writeFile(file, (write) => writeBackup(db, clock, build.version, write)).catch((error) => {
      throw new Error(`Nothing was migrated, because the backup before it failed: ${error.message}`)
    })
    const others = (await readdir(DATA_DIR)).filter(
      (name) => /^before-\d+\.backup$/.test(name) && name !== basename(file),
    )
    const times = await Promise.all(
      others.map(async (name) => ({ name, at: (await stat(join(DATA_DIR, name))).mtimeMs })),
    )
    for (const { name } of times.sort((a, b) => b.at - a.at).slice(1)) await rm(join(DATA_DIR, name))
  }
