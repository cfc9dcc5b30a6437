// Finds the programs the tests need, and installs the missing ones where that can be done unasked: Debian, as root.
import { existsSync, readdirSync, realpathSync } from 'node:fs'
import { mkdir, rm, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'

export interface Program {
  name: string
  /** The variable that points the tests at one already there. */
  variable: string
  debianPackage: string
  find(): string | undefined
}

const POLICY = '/usr/sbin/policy-rc.d'
const CLUSTER_SETTINGS = '/etc/postgresql-common/createcluster.d/prompt-signals-test.conf'

/**
 * Found as the folder that holds `postgres` and `initdb`: Debian keeps it off the PATH. Where links on the PATH lead
 * there, the folder itself is taken, as it holds the other programs too.
 */
export const postgresProgram: Program = {
  name: 'PostgreSQL (postgres and initdb)',
  variable: 'TEST_DATABASE_URL',
  debianPackage: 'postgresql',
  find: () => {
    const onPath = Bun.which('postgres')
    const folders = onPath ? [dirname(realpathSync(onPath))] : []
    return [...folders, ...debianPostgresFolders()].find(
      (folder) => existsSync(join(folder, 'postgres')) && existsSync(join(folder, 'initdb')),
    )
  },
}

/** A program that its variable names, or that the PATH finds by one of its names. */
const onPath = (name: string, variable: string, debianPackage: string, ...names: string[]): Program => ({
  name,
  variable,
  debianPackage,
  find: () => process.env[variable] ?? names.map((one) => Bun.which(one)).find((path) => path !== null) ?? undefined,
})

/** Its variable names a server, not the program. */
export const redisProgram: Program = {
  name: 'Redis or Valkey',
  variable: 'TEST_REDIS_URL',
  debianPackage: 'redis-server',
  find: () => Bun.which('redis-server') ?? Bun.which('valkey-server') ?? undefined,
}
export const pgbouncerProgram = onPath('PgBouncer', 'PGBOUNCER_PATH', 'pgbouncer', 'pgbouncer', '/usr/sbin/pgbouncer')
export const chromiumProgram = onPath(
  'Chromium',
  'CHROMIUM_PATH',
  'chromium',
  'chromium',
  'chromium-browser',
  'google-chrome',
)
export const nginxProgram = onPath('nginx', 'NGINX_PATH', 'nginx-light', 'nginx', '/usr/sbin/nginx')
export const haproxyProgram = onPath('HAProxy', 'HAPROXY_PATH', 'haproxy', 'haproxy', '/usr/sbin/haproxy')
export const patroniProgram = onPath('Patroni', 'PATRONI_PATH', 'patroni', 'patroni')
export const etcdProgram = onPath('etcd', 'ETCD_PATH', 'etcd-server', 'etcd')
export const gitProgram = onPath('git', 'GIT_PATH', 'git', 'git')

export const clusterPrograms = [postgresProgram, patroniProgram, etcdProgram, haproxyProgram, redisProgram]

export const canProvide = (programs: Program[]): boolean =>
  canInstall() || programs.every((program) => program.find() !== undefined)

/** Where each program is, in the order given; one message names everything that is missing. */
export async function findOrInstall(programs: Program[]): Promise<string[]> {
  const isMissing = (program: Program) => program.find() === undefined
  const missing = programs.filter(isMissing)
  if (missing.length > 0 && canInstall()) await install(missing.map((program) => program.debianPackage))
  const absent = programs.filter(isMissing)
  if (absent.length > 0) {
    const remedies = absent.map(
      (p) => `  ${p.name}: install it (Debian: apt-get install ${p.debianPackage}) or set ${p.variable}`,
    )
    throw new Error(`The tests need what is not here, and skip nothing:\n${remedies.join('\n')}`)
  }
  return programs.flatMap((program) => program.find() ?? [])
}

function debianPostgresFolders(): string[] {
  const root = '/usr/lib/postgresql'
  const versions = existsSync(root) ? readdirSync(root) : []
  return versions.sort((a, b) => Number(b) - Number(a)).map((version) => join(root, version, 'bin'))
}

function canInstall(): boolean {
  return process.getuid?.() === 0 && existsSync('/etc/debian_version') && Bun.which('apt-get') !== null
}

async function install(packages: string[]): Promise<void> {
  console.log(`Installing for the tests: ${packages.join(', ')}`)
  const written = await holdBackServices()
  try {
    await aptGet(['update', '-qq'])
    await aptGet(['install', '-y', '-qq', '--no-install-recommends', ...packages])
  } finally {
    for (const path of written) await rm(path, { force: true })
  }
}

/** The packages would start servers of their own; the tests start theirs and leave no other running. */
async function holdBackServices(): Promise<string[]> {
  const written: string[] = []
  if (!existsSync(POLICY)) {
    await writeFile(POLICY, '#!/bin/sh\nexit 101\n', { mode: 0o755 })
    written.push(POLICY)
  }
  await mkdir(dirname(CLUSTER_SETTINGS), { recursive: true })
  await writeFile(CLUSTER_SETTINGS, 'create_main_cluster = false\n')
  return [...written, CLUSTER_SETTINGS]
}

async function aptGet(args: string[]): Promise<void> {
  // Another apt run on a fresh machine is common, and worth waiting for.
  const command = ['apt-get', '-o', 'DPkg::Lock::Timeout=300', ...args]
  const child = Bun.spawn(command, {
    env: { ...process.env, DEBIAN_FRONTEND: 'noninteractive' },
    stdio: ['ignore', 'inherit', 'inherit'],
  })
  const code = await child.exited
  if (code !== 0) throw new Error(`${command.join(' ')} failed with exit code ${code}`)
}
