import { join } from 'node:path'
import { findOrInstall, postgresProgram } from './programs.ts'
import { postgresRecipe } from './services.ts'
import { startThrowaway } from './throwaway.ts'

export async function startWithStandby() {
  const [programs = ''] = await findOrInstall([postgresProgram])
  const primary = await startThrowaway((folder) => postgresRecipe(programs, folder))
  const standby = await startThrowaway((folder) => {
    const copy = [join(programs, 'pg_basebackup'), '-D', join(folder, 'data'), '-d', primary.url]
    return { ...postgresRecipe(programs, folder), prepare: [...copy, '--write-recovery-conf', '--checkpoint=fast'] }
  })
  return { primary, standby, stop: () => Promise.all([standby.stop(), primary.stop()]) }
}
