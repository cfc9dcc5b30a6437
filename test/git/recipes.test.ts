// The recipes of docs/git.md, each run as it stands there: those for pipelines in a clone as that pipeline leaves it.
import { expect, test } from 'bun:test'
import { chmod, copyFile, writeFile } from 'node:fs/promises'
import { join, resolve } from 'node:path'
import { readBlock, readYaml } from '../documents.ts'
import { createFolder } from '../program.ts'
import { useProgram } from '../use.ts'
import { type Clone, createClone, createSource, gitEnvironment, runGit } from './clone.ts'

const { operator, server } = useProgram()

const guide = 'docs/git.md'

/** An organisation with a key for CI, and a prompt that is linked to a.md. */
async function createLinked(repository: string) {
  const { id: org } = await operator.one('orgs', 'create', '--name', 'Acme', '--plan', 'team')
  const { key } = await operator.one('keys', 'create', '--org', org, '--preset', 'ci')
  const file = ['--repository', repository, '--path', 'a.md']
  const { id: prompt } = await operator.one('prompts', 'create', '--org', org, '--name', 'a', ...file)
  return { key, prompt }
}

/** A change on main, and one that is merged into it from a branch. */
function commitAndMerge(clone: Clone, message: string, afterEach: (branch: string) => void = () => {}) {
  clone.write('a.md')
  const first = clone.change('Begin', 'prompts/b.md')
  afterEach('main')
  clone.branch('topic')
  clone.change('On topic', 'a.md')
  afterEach('topic')
  clone.backTo('main')
  const merge = clone.merge('topic', message)
  afterEach('main')
  return { first, merge }
}

async function readHistory(prompt: string) {
  const history = await operator.json('history', 'list', '--prompt', prompt)
  return history.map(({ action, commit_sha, pr_url }) => [action, commit_sha, pr_url])
}

/** The two steps of the GitHub action, as a runner runs them, with a binary that is downloaded. */
async function actionSteps(): Promise<string> {
  const { concurrency, steps } = (await readYaml(guide, 'actions/checkout')).jobs.prompts
  const [checkout, use] = steps
  // A run that reads an older commit than another one before it creates prompts for the old names of renamed files.
  expect([concurrency, checkout.with]).toEqual(['prompts', { 'fetch-depth': 0, ref: 'main' }])
  expect(use.uses).toEndWith('/deploy/github-action@main')
  const { runs, inputs } = Bun.YAML.parse(await Bun.file('deploy/github-action/action.yml').text()) as Action
  const sha256 = new Bun.CryptoHasher('sha256').update(await Bun.file('dist/prompt-signals').bytes()).digest('hex')
  const binary = { 'binary-url': `file://${resolve('dist/prompt-signals')}`, 'binary-sha256': sha256 }
  const given: Record<string, string> = { ...use.with, ...binary, key: '$KEY' }
  expect(Object.keys(given).filter((name) => !inputs[name])).toEqual([])
  const lines = runs.steps.slice(1).flatMap(({ env, run }) => [
    ...Object.entries(env).map(([name, value]) => {
      const text = value.replace(/\$\{\{ inputs\.(\S+) \}\}/, (_, input) => given[input] ?? '')
      return `export ${name}="${text}"`
    }),
    run,
  ])
  const folder = createFolder()
  return [
    `export GITHUB_ACTION_PATH=${resolve('deploy/github-action')} RUNNER_TEMP=${folder} KEY="$PROMPT_SIGNALS_KEY"`,
    'set -e',
    ...lines,
  ].join('\n')
}

type Action = { inputs: Record<string, object>; runs: { steps: { env: Record<string, string>; run: string }[] } }

/** The script of GitLab, with a source whose build copies a binary. */
async function gitlabScript(): Promise<string> {
  const source = await createSource('deploy/get-binary.sh')
  const { script, resource_group } = (await readYaml(guide, 'CI_COMMIT_BRANCH')).prompts
  expect(resource_group).toBe('prompts')
  const variables = `export PROMPT_SIGNALS_SOURCE=${source} CI_PROJECT_DIR="$PWD"`
  return [variables, 'set -e', ...script].join('\n')
}

const onBranch = (_: Clone) => {}
const onNoBranch = ({ git }: Clone) => {
  git('switch', '--quiet', '--detach')
  git('branch', '--delete', '--force', 'main')
}

/** What each host writes for a merge. */
const messages: Record<string, string> = {
  GitHub: 'Merge pull request #7 from acme/topic',
  GitLab: "Merge branch 'topic' into 'main'\n\nSee merge request acme/prompts!7",
  Gitea: "Merge pull request 'Warmer' (#7) from topic into main",
}

test.each([
  [
    'GitHub Actions',
    actionSteps,
    onBranch,
    { GITHUB_REF_NAME: 'main', GITHUB_SERVER_URL: 'https://github.com', GITHUB_REPOSITORY: 'acme/prompts' },
    'https://github.com/acme/prompts/pull/7',
  ],
  [
    // Its runner reads the same workflow, and sets these as GitHub's does.
    'Gitea and Forgejo Actions',
    actionSteps,
    onBranch,
    {
      ...{ CI: 'true', GITEA_ACTIONS: 'true', GITHUB_ACTIONS: 'true', GITHUB_SERVER_URL: 'https://git.example.com' },
      ...{ GITHUB_REF: 'refs/heads/main', GITHUB_REF_NAME: 'main', GITHUB_REPOSITORY: 'acme/prompts' },
    },
    'https://git.example.com/acme/prompts/pulls/7',
  ],
  [
    'GitLab CI',
    gitlabScript,
    onNoBranch,
    { CI_COMMIT_BRANCH: 'main', CI_PROJECT_URL: 'https://gitlab.example.com/acme/prompts' },
    'https://gitlab.example.com/acme/prompts/-/merge_requests/7',
  ],
  [
    'Jenkins',
    async () => /sh '(.*)'/.exec(await readBlock(guide, 'groovy', 'withCredentials'))?.[1],
    onNoBranch,
    { BRANCH_NAME: 'main' },
    'https://github.com/acme/prompts/pull/7',
  ],
])('%s', async (name, readStep, leave, variables, url) => {
  const step = (await readStep()) ?? ''
  expect(step).toContain('https://prompts.example.com')
  const { host } = new URL(url)
  const { key, prompt } = await createLinked(`${host}/acme/prompts`)
  const isGitea = name.startsWith('Gitea')
  const clone = createClone(isGitea ? 'https://git.example.com/acme/prompts' : undefined)
  const message = messages[name.split(' ', 1)[0] as string] ?? (messages.GitHub as string)
  const { first, merge } = commitAndMerge(clone, message)
  clone.git('update-ref', 'refs/remotes/origin/main', 'HEAD')
  leave(clone)

  const bin = createFolder()
  await copyFile('dist/prompt-signals', join(bin, 'prompt-signals'))
  const { exitCode, stderr } = Bun.spawnSync(['sh', '-c', step.replace('https://prompts.example.com', server.url)], {
    cwd: clone.folder,
    env: { ...gitEnvironment, ...variables, PATH: `${bin}:${gitEnvironment.PATH}`, PROMPT_SIGNALS_KEY: key },
  })
  expect({ exitCode, stderr: stderr.toString() }).toEqual({ exitCode: 0, stderr: '' })
  expect(await readHistory(prompt)).toEqual([
    ['pr_merged', merge, url],
    ['deployed', first, null],
  ])
})

test('a push to a bare repository is in the history when the push returns, from any branch but only for the default one', async () => {
  const { key, prompt } = await createLinked('git.example.com/acme/prompts')
  const folder = createFolder()
  const bare = join(folder, 'prompts.git')
  runGit('/', ['init', '--quiet', '--bare', '--initial-branch=main', bare])
  const [keyFile, bin, hook] = [join(folder, 'key'), join(folder, 'prompt-signals'), join(bare, 'hooks/post-receive')]
  await copyFile('dist/prompt-signals', bin)
  await writeFile(keyFile, `${key}\n`)
  const recipe = await readBlock(guide, 'sh', '# hooks/post-receive')
  expect(recipe).toContain('/etc/prompt-signals/key')
  await writeFile(
    hook,
    recipe.replace('/etc/prompt-signals/key', keyFile).replace('https://prompts.example.com', server.url),
  )
  await Promise.all([chmod(bin, 0o755), chmod(hook, 0o755)])

  const clone = createClone(bare)
  // As a server does, the hook is run with the variables of git for this repository.
  const { first, merge } = commitAndMerge(clone, messages.Gitea as string, (branch) =>
    runGit(clone.folder, ['push', '--quiet', 'origin', branch], { PATH: `${folder}:${gitEnvironment.PATH}` }),
  )
  expect(await readHistory(prompt)).toEqual([
    ['pr_merged', merge, 'https://git.example.com/acme/prompts/pulls/7'],
    ['deployed', first, null],
  ])
})
