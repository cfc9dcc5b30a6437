// Writes the image of a release as an OCI archive, without a container engine. It has what the Dockerfile puts together: the
// C library of Debian 12, a user without rights, and the binary; no shell, no package manager.
import { execFileSync } from 'node:child_process'
import { hash } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { gzipSync } from 'node:zlib'
import { version } from '../package.json'
import { writeTar } from './tar.ts'

/** Debian keeps only the current ones, which have its fixes: look at them before a release. */
const debianPackages = {
  amd64: {
    'g/glibc/libc6_2.36-9+deb12u14_amd64.deb': 'ba4f88f73dbc3ae9055f3c20f4523bfdbaf1ad13ff95e258924f77d20b4fbedf',
    'g/gcc-12/libgcc-s1_12.2.0-14+deb12u1_amd64.deb':
      '3016e62cb4b7cd8038822870601f5ed131befe942774d0f745622cc77d8a88f7',
  },
  arm64: {
    'g/glibc/libc6_2.36-9+deb12u14_arm64.deb': '01f4330719fd4f65580e16ea5a0527f372fca750e8f588d26deaf09f2d3b1cf4',
    'g/gcc-12/libgcc-s1_12.2.0-14+deb12u1_arm64.deb':
      '576926b283613db80168ddf76380a3bd877602778cf0d226caa7bfbfa71eacf3',
  },
}

type Architecture = keyof typeof debianPackages
type Blob = { mediaType: string; digest: string; size: number }

const user = 65_532
const none = new Uint8Array()

/** The archive of an image for each architecture, from the binaries. */
export async function writeImage(binaries: Record<Architecture, Uint8Array>): Promise<Buffer> {
  const files: Record<string, { content: Uint8Array }> = {}
  const add = (mediaType: string, content: Uint8Array): Blob => {
    const digest = hash('sha256', content, 'hex')
    files[`blobs/sha256/${digest}`] = { content }
    return { mediaType: `application/vnd.oci.image.${mediaType}`, digest: `sha256:${digest}`, size: content.length }
  }
  const addJson = (mediaType: string, value: object) => add(mediaType, Buffer.from(JSON.stringify(value)))
  const config = readConfig(await readFile('Dockerfile', 'utf8'))
  const manifests = []
  for (const [architecture, binary] of Object.entries(binaries)) {
    const tars = [
      ...(await readPackages(architecture as Architecture)),
      writeTar({
        'data/': { content: none, owner: user },
        'etc/group': { content: Buffer.from(`root:x:0:\nnonroot:x:${user}:\n`) },
        'etc/passwd': {
          content: Buffer.from(
            `root:x:0:0:root:/:/sbin/nologin\nnonroot:x:${user}:${user}::/home/nonroot:/sbin/nologin\n`,
          ),
        },
        'home/nonroot/': { content: none, mode: 0o700, owner: user },
        'tmp/': { content: none, mode: 0o1777 },
      }),
      writeTar({ 'prompt-signals': { content: binary, mode: 0o755 } }),
    ]
    const layers = tars.map((tar) => add('layer.v1.tar+gzip', gzipSync(tar)))
    const rootfs = { type: 'layers', diff_ids: tars.map((tar) => `sha256:${hash('sha256', tar, 'hex')}`) }
    const image = addJson('config.v1+json', { architecture, os: 'linux', config, rootfs })
    const manifest = {
      schemaVersion: 2,
      mediaType: 'application/vnd.oci.image.manifest.v1+json',
      config: image,
      layers,
    }
    manifests.push({ ...addJson('manifest.v1+json', manifest), platform: { architecture, os: 'linux' } })
  }
  const nested = addJson('index.v1+json', {
    schemaVersion: 2,
    mediaType: 'application/vnd.oci.image.index.v1+json',
    manifests,
  })
  const annotations = {
    'org.opencontainers.image.ref.name': version,
    // The name under which Docker's containerd store loads it.
    'io.containerd.image.name': `docker.io/library/prompt-signals:${version}`,
  }
  const json = (value: object) => ({ content: Buffer.from(JSON.stringify(value)) })
  return writeTar({
    ...files,
    'index.json': json({ schemaVersion: 2, manifests: [{ ...nested, annotations }] }),
    'oci-layout': json({ imageLayoutVersion: '1.0.0' }),
  })
}

/** What the last stage of the Dockerfile sets. */
function readConfig(dockerfile: string): object {
  const stage = dockerfile.split(/^FROM /m).at(-1) as string
  const read = (name: string) => new RegExp(`^${name} (.+)$`, 'm').exec(stage)?.[1] as string
  return {
    User: `${user}`,
    ExposedPorts: { [`${read('EXPOSE')}/tcp`]: {} },
    Env: read('ENV').split(' '),
    Entrypoint: JSON.parse(read('ENTRYPOINT')),
    Cmd: JSON.parse(read('CMD')),
    Healthcheck: readHealthcheck(read('HEALTHCHECK')),
    Volumes: { [read('VOLUME')]: {} },
    WorkingDir: '/home/nonroot',
    Labels: { 'org.opencontainers.image.version': version, 'org.opencontainers.image.licenses': 'MIT' },
  }
}

/** Not in the specification of OCI, but Docker obeys it. */
function readHealthcheck(instruction: string): object {
  const [options = '', command = ''] = instruction.split(' CMD ')
  const read = (name: string) => Number(new RegExp(`--${name}=(\\d+)s`).exec(options)?.[1]) * 1e9
  return {
    Test: ['CMD', ...JSON.parse(command)],
    Interval: read('interval'),
    Timeout: read('timeout'),
    StartPeriod: read('start-period'),
  }
}

/** That of the machine, which is a Debian. */
function findMirror(): string {
  const sites = execFileSync('apt-get', ['indextargets', '--format', '$(SITE)'], { encoding: 'utf8' }).split('\n')
  return `${sites.find((site) => !site.endsWith('-security'))}/pool/main`
}

/** The files of the packages, each as a tar archive. */
async function readPackages(architecture: Architecture): Promise<Buffer[]> {
  const mirror = findMirror()
  return Promise.all(
    Object.entries(debianPackages[architecture]).map(async ([path, checksum]) => {
      const response = await fetch(`${mirror}/${path}`)
      const content = Buffer.from(await response.arrayBuffer())
      if (hash('sha256', content, 'hex') !== checksum) {
        throw new Error(`${path} is not there any more, or another: put what Debian 12 has now into scripts/image.ts`)
      }
      return execFileSync('xz', ['--decompress', '--stdout'], { input: readData(content), maxBuffer: 2 ** 28 })
    }),
  )
}

/** The files inside a Debian package, which is an archive of ar. */
function readData(content: Buffer): Buffer {
  for (let at = 8; at < content.length; ) {
    const name = content.toString('latin1', at, at + 16).trim()
    const size = Number(content.toString('latin1', at + 48, at + 58))
    const start = at + 60
    if (name === 'data.tar.xz') return content.subarray(start, start + size)
    at = start + size + (size % 2)
  }
  throw new Error('The package has no data.tar.xz')
}
