import { expect, test } from 'bun:test'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import ts from 'typescript'

const root = join(import.meta.dir, '../..')
const folder = join(root, 'deploy/kubernetes')
const packages: Record<string, string> = {
  'monitoring.coreos.com': '@kubernetes-models/prometheus-operator',
  'postgresql.cnpg.io': '@kubernetes-models/cloudnative-pg',
}
const read = (file: string) => readFileSync(join(root, file), 'utf8')

type Manifest = { apiVersion: string; kind: string }
type Kustomization = Manifest & { resources: string[] }

/** What `kustomize build` makes of an overlay, as long as that only lists files and other overlays. */
function build(overlay: string): Manifest[] {
  const { apiVersion, kind, resources, ...others } = parse(overlay, 'kustomization.yaml') as Kustomization
  const transformations = overlay === 'base' ? ['images'] : []
  expect({ apiVersion, kind }).toEqual({ apiVersion: 'kustomize.config.k8s.io/v1beta1', kind: 'Kustomization' })
  expect(Object.keys(others), overlay).toEqual(transformations)
  return resources.flatMap((name) => (name.endsWith('.yaml') ? parse(overlay, name) : build(join(overlay, name))))
}

const parse = (...names: string[]) => Bun.YAML.parse(readFileSync(join(folder, ...names), 'utf8')) as Manifest

/** A manifest as a constant of its published type, which rejects unknown fields. */
function toTypeScript(manifest: Manifest): string {
  const { apiVersion, kind } = manifest
  const [group = '', version] = apiVersion.includes('/') ? apiVersion.split('/') : ['', apiVersion]
  const source = `${packages[group] ?? 'kubernetes-models'}/${group === '' ? '' : `${group}/`}${version}/${kind}`
  return `import type { I${kind} } from '${source}'\nexport const manifest: I${kind} = ${JSON.stringify(manifest)}`
}

/** What TypeScript says of the manifests, together because it reads the types for seconds. */
function findMistakes(manifests: Manifest[]): string[] {
  // Beside this file, so that the packages are found.
  const place = mkdtempSync(join(import.meta.dir, '.kubernetes-'))
  try {
    const files = manifests.map((manifest, index) => {
      const file = join(place, `${index}.ts`)
      writeFileSync(file, toTypeScript(manifest))
      return file
    })
    const program = ts.createProgram(files, {
      noEmit: true,
      strict: true,
      skipLibCheck: true,
      types: [],
      module: ts.ModuleKind.ESNext,
      moduleResolution: ts.ModuleResolutionKind.Bundler,
    })
    return ts.getPreEmitDiagnostics(program).map(({ messageText }) => ts.flattenDiagnosticMessageText(messageText, ' '))
  } finally {
    rmSync(place, { recursive: true, force: true })
  }
}

test('every overlay has its manifests, and only misspelt fields are unknown to Kubernetes', () => {
  const base = ['Deployment', 'Job', 'PodDisruptionBudget', 'Service']
  const [monitoring, network] = [build('monitoring'), build('network-policy')]
  const kindsOf = (manifests: Manifest[]) => manifests.map(({ kind }) => kind).toSorted()
  expect(kindsOf(build('base'))).toEqual(base)
  expect(kindsOf(monitoring)).toEqual([...base, 'PrometheusRule', 'ServiceMonitor'].toSorted())
  expect(kindsOf(network)).toEqual([...base, 'NetworkPolicy'].toSorted())
  const text = JSON.stringify(monitoring.find(({ kind }) => kind === 'Deployment'))
  const misspelt = JSON.parse(text.replace('"readinessProbe"', '"readynessProbe"'))
  const example = read('deploy/kubernetes/postgres/cluster.yaml')
  const cluster = Bun.YAML.parse(example) as Manifest
  const misspeltCluster = Bun.YAML.parse(example.replace('minSyncReplicas', 'minSyncReplica')) as Manifest
  const mistakes = findMistakes([...monitoring, ...network, cluster, misspelt, misspeltCluster])
  const fields = ['"readynessProbe"', '"minSyncReplica"']
  expect(mistakes).toEqual(fields.map((field) => expect.stringContaining(field)))
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
  const others = ['housekeeping', 'no backup']
  const names = rows
    .filter((row) => !others.includes(row))
    .map((row) => row.replace(/(^| )(.)/g, (_, __, c) => c.toUpperCase()))
  const alerts = read('deploy/kubernetes/monitoring/alerts.yaml').matchAll(/alert: PromptSignals(\w+)/g)
  expect([...alerts].map(([, name]) => name)).toEqual(names)
})
