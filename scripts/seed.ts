// Makes generated/seed.tar.gz: a data directory of the embedded engine after initdb, so that a first start only unpacks it.
import nodeCrypto, { hash } from 'node:crypto'
import { existsSync } from 'node:fs'
import { mkdir, mkdtemp, readdir, readFile, rename, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { gzipSync } from 'node:zlib'
import { PGlite } from '@electric-sql/pglite'
import { NodeFS } from '@electric-sql/pglite/nodefs'
import { dependencies } from '../package.json'
import { type TarFile, writeTar } from './tar.ts'

const generated = join(import.meta.dirname, '../generated')
const seedPath = join(generated, 'seed.tar.gz')
const stampPath = join(generated, 'seed.stamp')

/** A seed is as good as what made it: the engine, whose version is pinned, and this very file. */
const stamp = `${dependencies['@electric-sql/pglite']} ${hash('sha256', await readFile(import.meta.filename), 'hex')}`
const made = await readFile(stampPath, 'utf8').catch(() => undefined)
if (made !== stamp || !existsSync(seedPath)) await makeSeed()

async function makeSeed(): Promise<void> {
  const directory = await mkdtemp(join(tmpdir(), 'seed-'))
  try {
    await initialise(directory)
    await mkdir(generated, { recursive: true })
    // Another install may be at work beside this one: each writes its own file, and the last rename wins.
    const fresh = `${seedPath}.${process.pid}`
    await writeFile(fresh, gzipSync(writeTar(await collect(directory)), { level: 9 }))
    await rename(fresh, seedPath)
    await writeFile(stampPath, stamp)
  } finally {
    await rm(directory, { recursive: true })
  }
}

async function initialise(directory: string): Promise<void> {
  freezeTimeAndChance()
  // Small log segments: the seed carries one, and a first start has to write it out.
  const engine = await PGlite.create({ fs: new NodeFS(directory), initDbStartParams: ['--wal-segsize=4'] })
  // Nothing can connect to the template databases here, so nothing could vacuum them: in the end they would
  // hold back the transaction horizon of the one database that is used. They are also two thirds of the size.
  await engine.exec(`update pg_database set datistemplate = false where datname in ('template0', 'template1')`)
  await engine.exec('drop database template0')
  await engine.exec('drop database template1')
  await engine.exec('vacuum (freeze, analyze)')
  await engine.exec('checkpoint')
  await engine.close()
}

/** Of these the engine makes the identifier of the database and the times in its files: every build has the same bytes. */
function freezeTimeAndChance(): void {
  let now = Date.UTC(2026, 0)
  const advance = () => {
    now += 1
    return now
  }
  Date.now = advance
  performance.now = advance
  nodeCrypto.randomFillSync = ((array: unknown) => array) as typeof nodeCrypto.randomFillSync
}

async function collect(directory: string): Promise<Record<string, TarFile>> {
  const entries = await readdir(directory, { recursive: true, withFileTypes: true })
  const segments = entries.filter((e) => e.parentPath.endsWith('/pg_wal') && e.isFile()).map((e) => e.name)
  const recycled = new Set(segments.sort().slice(1))
  const files: Record<string, TarFile> = {}
  for (const entry of entries) {
    const path = join(entry.parentPath, entry.name)
    const name = path.slice(directory.length + 1)
    if (entry.isDirectory()) files[`${name}/`] = { content: new Uint8Array(), mode: 0o700 }
    // After a clean shutdown only the oldest log segment holds anything; the later ones are spares.
    else if (!recycled.has(entry.name) && entry.name !== 'postmaster.pid')
      files[name] = { content: await readFile(path), mode: 0o600 }
  }
  return files
}
