import { expect, onTestFinished, test } from 'bun:test'
import { chmodSync, cpSync, mkdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { version } from '../../package.json'
import { packPython } from '../../scripts/clients.ts'
import { describeComponents, describeLicences, findPackages } from '../../scripts/packages.ts'
import { root } from '../clients/network.ts'
import { testInFullRun } from '../full.ts'
import { createFolder } from '../program.ts'

async function run(command: string[], cwd: string, env = {}) {
  const child = Bun.spawn(command, { cwd, env: { ...process.env, ...env }, stdout: 'pipe', stderr: 'pipe' })
  const [stdout, stderr] = await Promise.all([child.stdout.text(), child.stderr.text()])
  return { status: await child.exited, stdout, stderr }
}

const machine = process.arch === 'x64' ? 'x64' : 'arm64'
const binary = `prompt-signals-${version}-linux-${machine}`

function publish(release: string, text: string): void {
  writeFileSync(join(release, binary), text)
  cpSync(join(root, 'deploy/prompt-signals.service'), join(release, 'prompt-signals.service'))
  // Beside it is another file whose name begins like its.
  writeFileSync(
    join(release, 'SHA256SUMS'),
    Bun.spawnSync(['sh', '-c', `cd ${release} && sha256sum prompt-signals*; echo '0  ${binary}.cdx.json'`]).stdout,
  )
}

test('install.sh installs what SHA256SUMS names, again too, and nothing that was changed', async () => {
  const [release, target] = [createFolder(), createFolder()]
  const installed = join(target, 'usr/local/bin/prompt-signals')
  const install = () => run(['sh', join(root, 'deploy/install.sh'), version, release], target, { DESTDIR: target })
  for (const text of ['first', 'second']) {
    publish(release, text)
    expect(await install()).toEqual({ status: 0, stdout: '', stderr: '' })
    expect([readFileSync(installed, 'utf8'), statSync(installed).mode & 0o777]).toEqual([text, 0o755])
  }
  expect(readFileSync(join(target, 'etc/systemd/system/prompt-signals.service'), 'utf8')).toContain('[Service]')
  writeFileSync(join(release, binary), 'changed')
  const stderr = `${binary} is not the one that SHA256SUMS names. Nothing was installed.\n`
  expect(await install()).toEqual({ status: 1, stdout: '', stderr })
  writeFileSync(join(release, 'SHA256SUMS'), '')
  expect(await install()).toEqual({ status: 1, stdout: '', stderr })
  expect(readFileSync(installed, 'utf8')).toBe('second')
})

test.each([
  ['answers in the end', 'active', 0],
  ['fails again', 'activating', 1],
])('install.sh restarts a failing service, which %s', async (_, state, status) => {
  const [release, target, programs] = [createFolder(), createFolder(), createFolder()]
  const add = (name: string, text: string) =>
    writeFileSync(join(programs, name), `#!/bin/sh\n${text}\n`, { mode: 0o755 })
  add('id', '')
  add('install', `[ "$1" = -d ] || exec ${Bun.which('install')} "$@"`)
  // Of a service with a setting that only its process has.
  const service = Bun.spawn(['sleep', '60'], { env: { PATH: process.env.PATH, PORT: '47 & 11' } })
  onTestFinished(() => service.kill())
  add(
    'systemctl',
    `echo "$@" >> calls
case $1 in
  restart) echo ${state} > state ;;
  show) echo ${service.pid} ;;
  is-active) [ "$2" = --quiet ] || cat state; grep -qx active state ;;
esac`,
  )
  writeFileSync(join(target, 'state'), 'activating\n')
  publish(release, '#!/bin/sh\necho "$PORT $*" >> asked\n[ "$(wc -l < asked)" = 2 ]\n')
  const script = readFileSync(join(root, 'deploy/install.sh'), 'utf8').replaceAll(
    /\/(usr\/local|etc\/systemd)/g,
    `${target}$&`,
  )
  writeFileSync(join(release, 'install.sh'), script)
  const PATH = `${programs}:${process.env.PATH}`
  expect(await run(['sh', join(release, 'install.sh'), version, release], target, { PATH })).toEqual({
    status,
    stdout: '',
    stderr: status === 0 ? '' : expect.stringContaining('journalctl -u prompt-signals'),
  })
  expect(readFileSync(join(target, 'calls'), 'utf8')).toContain('restart prompt-signals.service\n')
  const asked = '47 & 11 healthcheck --live\n'
  expect(readFileSync(join(target, 'asked'), 'utf8')).toBe(status === 0 ? asked.repeat(2) : asked)
})

test('a release needs a commit that has the files, and the key that is to sign it', async () => {
  const folder = createFolder()
  const release = async (env = {}) => {
    const command = [process.execPath, join(root, 'scripts/release.ts')]
    return (await run(command, folder, { BUILD_COMMIT: '', MINISIGN_KEY: '', ...env })).stderr
  }
  expect(await release()).toContain('The commit is unknown')
  await run(['git', 'init'], folder)
  writeFileSync(join(folder, 'new'), '')
  expect(await release()).toContain('?? new')
  const stderr = await release({ BUILD_COMMIT: 'test', MINISIGN_KEY: 'key' })
  expect(stderr).toContain(`there is no file ${join(folder, 'key')}`)
})

test('the wheel of the Python client is one, with its version', async () => {
  const { name, content } = await packPython()
  const folder = createFolder()
  writeFileSync(join(folder, name), content)
  const script = `import sys, importlib.metadata as m; sys.path.insert(0, '${name}')
import prompt_signals; print(prompt_signals.__file__, m.version('prompt-signals'), [f.hash.value != '' for f in m.files('prompt-signals')[:4]])`
  expect(await run(['python3', '-c', script], folder)).toMatchObject({
    status: 0,
    stdout: `${name}/prompt_signals.py ${version} [True, True, True, True]\n`,
  })
  expect(await run(['python3', '-m', 'zipfile', '-t', name], folder)).toMatchObject({ stdout: 'Done testing\n' })
})

test('the components and the licences have Postgres, which is inside the engine', async () => {
  const packages = await findPackages([])
  const { components } = JSON.parse(describeComponents(version, packages))
  expect(components.map(({ purl }: { purl: string }) => purl)).toContainEqual(
    expect.stringMatching(/^pkg:generic\/postgresql@18\.\d+$/),
  )
  expect(await describeLicences(packages)).toContain('PostgreSQL Global Development Group')
})

testInFullRun(
  'two clones in different folders release the same bytes',
  async () => {
    const tracked = (await run(['git', 'ls-files', '-z', '--cached', '--others', '--exclude-standard'], root)).stdout
      .split('\0')
      .filter(Boolean)
    // In the place of the program that signs.
    const programs = createFolder()
    writeFileSync(join(programs, 'minisign'), '#!/bin/sh\necho "$@" > SHA256SUMS.minisig\n', { mode: 0o755 })
    writeFileSync(join(programs, 'key'), '')
    const env = { BUILD_COMMIT: 'test', MINISIGN_KEY: join(programs, 'key'), PATH: `${programs}:${process.env.PATH}` }
    const release = async (folder: string) => {
      for (const file of tracked) {
        mkdirSync(dirname(join(folder, file)), { recursive: true })
        cpSync(join(root, file), join(folder, file))
      }
      const { status, stderr } = await run([process.execPath, 'run', 'release'], folder, env)
      if (status !== 0) throw new Error(stderr)
      expect(readFileSync(join(folder, 'dist/release/SHA256SUMS.minisig'), 'utf8')).toContain(env.MINISIGN_KEY)
      return readFileSync(join(folder, 'dist/release/SHA256SUMS'), 'utf8')
    }
    const folder = createFolder()
    const first = await release(folder)
    expect(first).toContain(binary)
    expect(await release(join(createFolder(), 'another, longer name'))).toBe(first)
    await runImage(join(folder, 'dist/release', `prompt-signals-${version}-image.tar`))
  },
  600_000,
)

/** Unpacks what is for this machine, and runs it as the user of the image, with nothing else in sight. */
async function runImage(archive: string): Promise<void> {
  const [layout, filesystem] = [createFolder(), createFolder()]
  const must = async (...command: string[]) => {
    const { status, stdout, stderr } = await run(command, layout)
    expect({ status, stderr: status === 0 ? '' : stderr }).toEqual({ status: 0, stderr: '' })
    return stdout
  }
  await must('tar', '-xf', archive)
  const readBlob = ({ digest }: { digest: string }) =>
    JSON.parse(readFileSync(join(layout, 'blobs', digest.replace(':', '/')), 'utf8'))
  const [index] = JSON.parse(readFileSync(join(layout, 'index.json'), 'utf8')).manifests
  expect(index.annotations['io.containerd.image.name']).toBe(`docker.io/library/prompt-signals:${version}`)
  const { manifests } = readBlob(index)
  const architecture = process.arch === 'x64' ? 'amd64' : 'arm64'
  const manifest = readBlob(
    manifests.find((one: { platform: { architecture: string } }) => one.platform.architecture === architecture),
  )
  for (const { digest } of manifest.layers) {
    await must('tar', '-xzf', join('blobs', digest.replace(':', '/')), '-C', filesystem)
  }
  const { config } = readBlob(manifest.config)
  expect(config).toMatchObject({ User: '65532', Cmd: ['serve'] })
  expect(config.Env).toContain('REQUIRE_DATABASE=on')
  expect(config.Healthcheck).toEqual({
    Test: ['CMD', '/prompt-signals', 'healthcheck', '--live'],
    Interval: 10e9,
    Timeout: 5e9,
    StartPeriod: 10e9,
  })
  chmodSync(filesystem, 0o755)
  mkdirSync(join(filesystem, 'proc'))
  const enter = `mount -t proc proc ${filesystem}/proc && exec chroot --userspec=${config.User}:${config.User} ${filesystem}`
  const inside = (...args: string[]) => {
    const line = [enter, ...config.Entrypoint, ...args].join(' ')
    return must('env', '-i', `PATH=${process.env.PATH}`, ...config.Env, 'unshare', '--mount', 'sh', '-c', line)
  }
  expect(JSON.parse(await inside('version', '--json'))).toMatchObject({ version, commit: 'test' })
  await inside('init', '--name', 'Inside')
  expect(await inside('orgs', 'list')).toContain('Inside')
}
