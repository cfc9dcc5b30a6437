// The recipe for any git server in docs/git.md, run as it stands there.
import { afterAll, beforeAll, expect, test } from 'bun:test'
import { chmod, copyFile, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { createDatabase, type TestDatabase } from '../harness.ts'
import { createFolder, createOperator, type Operator, type Server, startServer } from '../program.ts'
import { createClone, gitEnvironment, runGit } from './clone.ts'

let database: TestDatabase
let server: Server
let operator: Operator

beforeAll(async () => {
  database = await createDatabase()
  server = await startServer(database.settings)
  operator = createOperator(database.settings)
})

afterAll(async () => {
  await server.stop()
  await database.close()
})

/** The recipe with the address and the key of this test in the places of those of the example. */
async function readRecipe(keyFile: string): Promise<string> {
  const text = await readFile('docs/git.md', 'utf8')
  const [, recipe = ''] = /```sh\n(#!\/bin\/sh\n# hooks\/post-receive\n[\s\S]*?)```/.exec(text) ?? []
  expect(recipe).toContain('/etc/prompt-signals/key')
  return recipe.replace('/etc/prompt-signals/key', keyFile).replace('https://prompts.example.com', server.url)
}

test('a push to a bare repository is in the history when the push returns, from any branch but only for the default one', async () => {
  const { id: org } = await operator.one('orgs', 'create', '--name', 'Acme', '--plan', 'team')
  const { key } = await operator.one('keys', 'create', '--org', org, '--preset', 'ci')
  const file = ['--repository', 'acme/prompts', '--path', 'prompts/greeting.md']
  const { id: prompt } = await operator.one('prompts', 'create', '--org', org, '--name', 'greeting', ...file)

  const folder = createFolder()
  const bare = join(folder, 'prompts.git')
  runGit('/', ['init', '--quiet', '--bare', '--initial-branch=main', bare])
  const [keyFile, bin, hook] = [join(folder, 'key'), join(folder, 'prompt-signals'), join(bare, 'hooks/post-receive')]
  await copyFile('dist/prompt-signals', bin)
  await writeFile(keyFile, `${key}\n`)
  await writeFile(hook, await readRecipe(keyFile))
  await Promise.all([chmod(bin, 0o755), chmod(hook, 0o755)])

  const clone = createClone(bare)
  clone.write('prompts/greeting.md')
  const first = clone.commit('Begin')
  // As a server does, the hook is run with the variables of git for this repository.
  const push = (...refs: string[]) =>
    runGit(clone.folder, ['push', '--quiet', 'origin', ...refs], { PATH: `${folder}:${gitEnvironment.PATH}` })
  push('main')
  clone.git('switch', '--quiet', '--create', 'topic')
  clone.write('prompts/greeting.md')
  clone.commit('On topic')
  push('topic')
  clone.git('switch', '--quiet', 'main')
  const merge = clone.merge('topic', "Merge pull request 'Warmer' (#5) from topic into main")
  push('main')

  const history = await operator.json('history', 'list', '--prompt', prompt)
  expect(history.map(({ action, commit_sha, pr_url }) => [action, commit_sha, pr_url])).toEqual([
    ['pr_merged', merge, 'https://git.example.com/acme/prompts/pulls/5'],
    ['deployed', first, null],
  ])
})
