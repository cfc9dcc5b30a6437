import { readdir, rm } from 'node:fs/promises'
import { join, resolve } from 'node:path'
import { writeFile } from '../backup/file.ts'
import { writeBackup } from '../backup/write.ts'
import type { BackUp } from '../db/migrations.ts'
import { build } from '../platform.ts'
import type { Context } from './command.ts'

/** How many of these backups stay: those of the last releases that changed the schema. */
const kept = 2

/** Backs the embedded database up into its folder, as nobody else has done so when a new binary starts on it. */
export const backUpFor =
  ({ config: { DATA_DIR }, clock, warn }: Context): BackUp =>
  async (db, version) => {
    const file = join(DATA_DIR, `before-${version + 1}.backup`)
    warn(`Backing the database up to ${resolve(file)} before it is migrated.`)
    await writeFile(file, (write) => writeBackup(db, clock, build.version, write)).catch((error) => {
      throw new Error(`Nothing was migrated, because the backup before it failed: ${error.message}`)
    })
    for (const name of olderBackups(await readdir(DATA_DIR))) await rm(join(DATA_DIR, name))
  }

function olderBackups(names: string[]): string[] {
  const numberOf = (name: string) => Number(/^before-(\d+)\.backup$/.exec(name)?.[1] ?? 0)
  const backups = names.filter((name) => numberOf(name) > 0)
  return backups.sort((a, b) => numberOf(b) - numberOf(a)).slice(kept)
}
