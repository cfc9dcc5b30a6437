import { join } from 'node:path'
import { runForOne } from './binary.ts'
import { findOrInstall, postgresProgram } from './programs.ts'
import { postgresRecipe, startPostgres } from './services.ts'
import { startThrowaway } from './throwaway.ts'

/** A migrated Postgres, and one that follows it. */
export async function startWithStandby() {
  const [programs = ''] = await findOrInstall([postgresProgram])
  const primary = await startPostgres()
  const standby = await startThrowaway((folder) => {
    const copy = [join(programs, 'pg_basebackup'), '-D', join(folder, 'data'), '-d', primary.url]
    return { ...postgresRecipe(programs, folder), prepare: [...copy, '--write-recovery-conf', '--checkpoint=fast'] }
  })
  await runForOne(['migrate'], { DATABASE_URL: primary.url })
  return { primary, standby, stop: () => Promise.all([standby.stop(), primary.stop()]) }
}
