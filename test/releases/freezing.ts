// FREEZE=yes writes what 1.0 promises, until 1.0 is released.
import { readFileSync } from 'node:fs'
import { join } from 'node:path'

const changelogFile = join(import.meta.dir, '../../CHANGELOG.md')

/** Throws once the changelog has a date for 1.0.0, so nobody overwrites a promise already made. */
export function requireUnreleased(changelog = readFileSync(changelogFile, 'utf8')): void {
  if (/^## 1\.0\.0 \(unreleased\)$/m.test(changelog)) return
  throw new Error('1.0.0 is released, says CHANGELOG.md: test/releases/1.0 must stay as it is')
}

export const isFreezing = process.env.FREEZE === 'yes'
if (isFreezing) requireUnreleased()
