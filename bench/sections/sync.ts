import { createWriteStream } from 'node:fs'
import { join } from 'node:path'
import { pipeline } from 'node:stream/promises'
import { findOrInstall, gitProgram } from '../../test/programs.ts'
import type { Context } from '../context.ts'
import { runProgram } from '../processes.ts'

const [commits, prompts, others] = [100_000, 500, 2_000]

/** A repository of 100,000 commits with 500 prompts: a sync into an empty history, against git reading the same alone. */
export async function measureSync({ folder, operator, report, signal }: Context): Promise<void> {
  const { program, settings, cwd } = operator
  await findOrInstall([gitProgram])
  const repository = join(folder, 'repository.git')
  await runProgram(['git', 'init', '--quiet', '--bare', '--initial-branch=main', repository], { cwd, signal })
  const stream = join(folder, 'commits')
  await pipeline(writeCommits(), createWriteStream(stream))
  const load = `git -C '${repository}' fast-import --quiet < '${stream}'`
  await runProgram(['sh', '-c', load], { cwd, signal })
  const made = await runProgram([program, 'orgs', 'create', '--name', 'Sync', '--plan', 'team', '--json'], {
    cwd,
    env: settings,
    signal,
  })
  const { id: org } = JSON.parse(made) as { id: string }

  const log = ['sh', '-c', `git -C '${repository}' log --raw main > /dev/null`]
  const where = ['--org', org, '--repository', 'https://github.com/acme/prompts', '--create', 'prompts/**/*.md']
  const sync = [
    'sh',
    '-c',
    `'${program}' sync '${repository}' ${where.map((word) => `'${word}'`).join(' ')} > /dev/null`,
  ]
  const seconds = async (command: string[]) => {
    const startedAt = performance.now()
    await runProgram(command, { cwd, env: settings, signal })
    return (performance.now() - startedAt) / 1_000
  }
  // The first run is for the files to be in memory.
  await seconds(log)
  const [first, whole, again, last] = [await seconds(log), await seconds(sync), await seconds(sync), await seconds(log)]
  const alone = (first + last) / 2
  report.targets.push(
    { name: 'sync of 100,000 commits and 500 prompts, seconds', value: whole, below: 60 },
    { name: 'the same ÷ git log --raw', value: whole / alone, atMost: 5 },
    { name: 'sync of them again ÷ git log --raw', value: again / alone, atMost: 5 },
  )
}

/** Commits for `git fast-import`: half on the branch itself, the others by merges of pull requests. */
function* writeCommits(): Iterable<string> {
  const paths = [
    ...Array.from({ length: prompts }, (_, index) => `prompts/${index % 20}/${index}.md`),
    ...Array.from({ length: others }, (_, index) => `src/${index % 40}/${index}.ts`),
  ]
  let mark = 0
  // Always the same, with steps that have no factor in common with the number of paths.
  const pathsOf = (number: number) => [1, 2, 3].map((step) => paths[(number * 7_919 * step) % paths.length] as string)

  function commit(branch: string, message: string, changed: string[], ...parents: number[]): string {
    mark += 1
    const by = `Ada ${mark % 9} <ada${mark % 9}@example.com> ${1_500_000_000 + mark * 600} +0000`
    const [from, merge] = parents
    return [
      `commit refs/heads/${branch}`,
      `mark :${mark}`,
      `author ${by}`,
      `committer ${by}`,
      `data ${message.length}\n${message}`,
      ...(from ? [`from :${from}`] : []),
      ...(merge ? [`merge :${merge}`] : []),
      ...changed.map((path) => `M 644 inline ${path}\ndata ${String(mark).length}\n${mark}`),
      '\n',
    ].join('\n')
  }

  yield commit('main', 'Begin', paths)
  for (let head = mark; mark < commits; head = mark) {
    yield commit('main', 'On the branch', pathsOf(mark), head)
    yield commit('main', 'Again', pathsOf(mark), mark)
    const base = mark
    yield commit('topic', 'On another', pathsOf(mark), head)
    const changed = pathsOf(mark - 1)
    yield commit('main', `Merge pull request #${mark} from acme/topic`, changed, base, mark)
  }
}
