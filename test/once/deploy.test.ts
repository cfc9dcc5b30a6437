import { expect, test } from 'bun:test'
import { readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'

// biome-ignore lint/suspicious/noExplicitAny: manifests of every shape
type Manifest = Record<string, any>

const read = (...path: string[]) => readFileSync(join(...path), 'utf8')
const parse = (...path: string[]) => Bun.YAML.parse(read(...path)) as Manifest
const files = [...new Bun.Glob('deploy/kubernetes/**/*.yaml').scanSync('.')]
const manifests = files.map((file) => parse(file))

test('the user that docs/operating.md runs commands as is the one that the unit creates its folder for', () => {
  const unit = read('deploy/prompt-signals.service')
  const [, user = ''] = /^User=(.+)$/m.exec(unit) ?? []
  const [, folder = ''] = /^StateDirectory=(.+)$/m.exec(unit) ?? []
  expect(unit).toContain(`useradd --system --shell /usr/sbin/nologin ${user}\n`)
  // It puts the folder where only the unit reaches it.
  expect(unit).not.toMatch(/^DynamicUser=/m)
  const commands = read('docs/operating.md').match(/^.*DATA_DIR=\/var\/lib\/prompt-signals .*$/gm) ?? []
  expect(commands).toHaveLength(2)
  for (const command of commands) {
    expect(command).toMatch(
      new RegExp(`^sudo (-E )?-u ${user} DATA_DIR=/var/lib/${folder} /usr/local/bin/prompt-signals `),
    )
  }
})

test('each instance of the unit serves metrics on its own port, whatever the file of settings says', async () => {
  const [, started = ''] = /^ExecStart=(.+)$/m.exec(read('deploy/prompt-signals@.service')) ?? []
  const command = started
    .replace('%i', '9464')
    .replace('/usr/local/bin/prompt-signals serve', 'printenv METRICS_ADDRESS')
  const fromFile = { ...process.env, METRICS_ADDRESS: '127.0.0.1:1' }
  expect(await Bun.$`sh -c ${command}`.env(fromFile).text()).toBe('127.0.0.1:9464\n')
})

test('compose.yaml passes every setting on that it does not set, and that needs no file or other database', () => {
  const [, table = ''] = read('docs/settings.md').split('<!-- table: settings -->')
  const names = [...table.matchAll(/^\| `(\w+)`/gm)].map(([, name]) => name as string)
  const others = ['HOST', 'PORT', 'DATA_DIR', 'REQUIRE_DATABASE', 'REUSE_PORT', 'PROMPT_SIGNALS_KEY']
  const wanted = names.filter((name) => !others.includes(name) && !name.endsWith('_FILE'))
  const { environment } = parse('compose.yaml').services['prompt-signals']
  expect(Object.keys(environment).sort()).toEqual(wanted.sort())
})

/** Each was looked up in the reference of its kind: a name that is missing here is misspelt, or to be looked up. */
const fields = `
  alert allowPrivilegeEscalation apiVersion args automountServiceAccountToken backoffLimit bootstrap capabilities
  containerPort containers database defaultMode drop egress endpoints env expr failureThreshold for from fsGroup groups
  httpGet image images ingress initdb instances interval key kind labelSelector labels limits livenessProbe
  matchExpressions matchLabels maxSkew maxSurge maxSyncReplicas maxUnavailable metadata minSyncReplicas mountPath name
  namespaceSelector newName newTag operator owner parameters path periodSeconds podSelector policyTypes port ports
  postgresql protocol readOnly readOnlyRootFilesystem readinessProbe replicas requests resources restartPolicy
  rollingUpdate rules runAsGroup runAsNonRoot runAsUser seccompProfile secret secretName securityContext selector size
  spec startupProbe storage strategy targetPort template terminationGracePeriodSeconds timeoutSeconds topologyKey
  topologySpreadConstraints type value values volumeMounts volumes whenUnsatisfiable`.split(/\s+/)

/** Every value of a field of this name, or every field, outside of those that hold names of one's own. */
function findFields(value: unknown): [name: string, value: unknown][] {
  const isFree = (name: string) => ['labels', 'matchLabels', 'limits', 'parameters', 'requests'].includes(name)
  if (typeof value !== 'object' || value === null) return []
  if (Array.isArray(value)) return value.flatMap(findFields)
  return Object.entries(value).flatMap(([name, inner]) => [[name, inner], ...(isFree(name) ? [] : findFields(inner))])
}

test('every field of a manifest for Kubernetes is a known one', () => {
  const names = manifests.flatMap(findFields).map(([name]) => name)
  expect(names.filter((name) => !fields.includes(name) && name !== 'app.kubernetes.io/name')).toEqual([])
})

test('every file, selector, port and volume that a manifest names is one of another', () => {
  const overlays = files.filter((file) => file.endsWith('kustomization.yaml'))
  const listed = overlays.flatMap((file) => parse(file).resources.map((name: string) => join(dirname(file), name)))
  const others = files.filter((file) => !overlays.includes(file) && !file.includes('/postgres/'))
  expect(listed.filter((name) => name.endsWith('.yaml')).sort()).toEqual(others.sort())
  expect(new Set(listed.filter((name) => !name.endsWith('.yaml')))).toEqual(new Set(['deploy/kubernetes/base']))

  const all = manifests.flatMap(findFields)
  const namesIn = (field: string) => all.filter(([name]) => name === field).flatMap(([, value]) => value as Manifest)
  const texts = manifests.map((manifest) => JSON.stringify(manifest)).join('')
  const apps = new Set([...texts.matchAll(/"app\.kubernetes\.io\/name":"([^"]+)"/g)].map(([, name]) => name))
  const deployed = manifests.flatMap(({ kind, metadata }) => (/^(Deployment|Job)$/.test(kind) ? metadata.name : []))
  expect([...apps].sort()).toEqual(deployed.sort())
  expect(new Set(namesIn('values'))).toEqual(new Set(deployed))
  const ports = namesIn('ports').map(({ containerPort, name }) => containerPort && name)
  const named = all.filter(([name, value]) => /^(port|targetPort)$/.test(name) && typeof value === 'string')
  expect(named.filter(([, port]) => !ports.includes(port))).toEqual([])
  const volumes = namesIn('volumes').map(({ name }) => name)
  expect(namesIn('volumeMounts').filter(({ name }) => !volumes.includes(name))).toEqual([])
})

test('alerts name metrics of the service, and settings are those it reads', () => {
  const metrics = new Set(read('docs/observability.md').match(/prompt_signals_\w+/g))
  for (const metric of read('deploy/kubernetes/monitoring/alerts.yaml').match(/prompt_signals_\w+/g) ?? []) {
    expect(metrics).toContain(metric.replace(/_(count|bucket)$/, ''))
  }
  const settings = read('docs/settings.md')
  const names = read('deploy/kubernetes/base/deployment.yaml').match(/name: [A-Z_]+$/gm) ?? []
  expect(names).toHaveLength(5)
  for (const name of names) expect(settings).toContain(`\`${name.slice('name: '.length)}\``)
})

test('every alarm of docs/operating.md is an alert, but those of the embedded database and of backups', () => {
  const [, alarms = ''] = read('docs/operating.md').split('### Alarms')
  const rows = [...alarms.matchAll(/^\| (?!Alarm )([a-z ]+) \|/gm)].map(([, name = '']) => name)
  const names = rows
    .filter((row) => !['housekeeping', 'no backup'].includes(row))
    .map((row) => row.replace(/(^| )(.)/g, (_, __, c) => c.toUpperCase()))
  const alerts = read('deploy/kubernetes/monitoring/alerts.yaml').matchAll(/alert: PromptSignals(\w+)/g)
  expect([...alerts].map(([, name]) => name)).toEqual(names)
})
