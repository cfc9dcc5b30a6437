// What a sync reads in repositories of every shape. Needs only git, and writes nothing.
import { describe, expect, test } from 'bun:test'
import { parseMessage, titleOf } from '../../src/git/entries.ts'
import { followFiles } from '../../src/git/follow.ts'
import { planSync } from '../../src/git/plan.ts'
import { createGit } from '../../src/git/program.ts'
import type { Commit } from '../../src/git/read.ts'
import { openRepository } from '../../src/git/repository.ts'
import { type Clone, createClone, gitEnvironment, grow } from '../git/clone.ts'

const now = new Date('2026-06-01T00:00:00Z')

type Options = { paths?: string[]; createGlobs?: string[]; excludeGlobs?: string[]; repository?: string }

async function plan(
  { folder }: Clone,
  { paths = ['a.md'], createGlobs = [], excludeGlobs = [], repository }: Options = {},
) {
  const git = createGit(folder, gitEnvironment, new AbortController().signal)
  const opened = await openRepository(git, folder, { branch: null, repository: repository ?? null })
  const linked = paths.map((path, index) => ({ id: `pmt_${index}`, path, liveBranch: 'main' }))
  return planSync(git, opened, linked, { createGlobs, excludeGlobs, now, onProgress() {} })
}

/** The entries of a.md, or of the files given, oldest first. Of deploys, Ada and 1 January nothing is said. */
async function story(clone: Clone, options: Options = {}): Promise<string[]> {
  const { prompts, entries } = await plan(clone, options)
  return entries.map(({ prompt, entry, covers }) => {
    const { action, commit_sha, pr_number, user, created_at } = entry
    const others = covers.filter((sha) => sha !== commit_sha).map((sha) => subjectOf(clone, sha))
    return [
      created_at?.slice(5, 13).replace('01-01T', ''),
      ...(prompts.length > 1 ? [`${prompt.path}:`] : []),
      ...(action === 'deployed' && !pr_number ? [] : [action, `#${pr_number}`]),
      subjectOf(clone, commit_sha),
      ...(user.name === 'Ada' ? [] : [`by ${user.name}`]),
      ...(others.length > 0 ? [`of ${others.join(', ')}`] : []),
    ].join(' ')
  })
}

const subjectOf = ({ git }: Clone, sha: string) => git('log', '--max-count=1', '--format=%s', sha)

const beginning = 'main: Begin | a.md=one\\ntwo\\nthree\\nfour\\nfive\\n'
const begin = (origin?: string): Clone => grow(beginning, origin)
/** A repository that begins with a.md. */
const growOn = (story: string): Clone => grow(`${beginning}\n${story}`)

const bob = { author: 'Bob <bob@example.com>' }
const topicMerge = 'Merge pull request #3 from acme/topic'
const merged = `pr_merged #3 ${topicMerge}`

/** After the story: the entries of the prompts that are linked to these files. */
test.each<[guarantee: string, story: string, expected: Record<string, string[]>]>([
  [
    'commits that a pull brings keep their authors',
    `theirs: Theirs | a.md
    main: Mine | b.md | Bob
    main: Merge branch 'main' of https://github.com/acme/prompts | +theirs | Bob`,
    { 'a.md': ['10 Begin', '11 Theirs'], 'b.md': ['13 Mine by Bob'] },
  ],
  [
    'a merge of two branches brings what they share before what is only on one',
    `one: On both | a.md
    two: On two | b.md
    one: On one | a.md
    main: On main | c.md
    main: Merge branches 'one' and 'two' | +one,two`,
    { 'a.md': ['10 Begin', '15 On both', '15 On one'] },
  ],
  [
    'a pull request does not own commits that were merged into its branch',
    `topic: Other file | b.md
    main: On main | a.md
    topic: Merge branch 'main' into topic | +main
    main: ${topicMerge} | +topic | Bob`,
    { 'a.md': ['10 Begin', '12 On main'], 'b.md': [`14 ${merged} by Bob of Other file`] },
  ],
  [
    'a change that a pull request reverts before its merge does not count',
    `topic: There | a.md
    topic: And back | a.md=one\\ntwo\\nthree\\nfour\\nfive\\n
    topic: Something else | b.md
    main: ${topicMerge} | +topic`,
    { 'a.md': ['10 Begin'] },
  ],
  [
    'a branch of pull requests that is merged locally brings them at the time of that merge',
    `topic: On topic | a.md
    develop<main: ${topicMerge} | +topic | Bob
    develop: On develop | a.md
    main: Elsewhere | b.md
    main: Merge branch 'develop' | +develop`,
    { 'a.md': ['10 Begin', `15 ${merged} by Bob of On topic`, '15 On develop'] },
  ],
  [
    'a file is followed through all its names',
    `main: To b | a.md>b.md
    main: To c | b.md>c.md
    main: Change c | c.md`,
    {
      'a.md': ['10 Begin', '11 To b', '12 To c', '13 Change c'],
      'c.md': ['10 Begin', '11 To b', '12 To c', '13 Change c'],
    },
  ],
  [
    'a change under the old name counts when the rename was made on the other side of a merge',
    `topic: Under the old name | a.md=one\\ntwo\\nthree\\nfour\\nfive,changed\\n
    main: Rename | a.md>b.md
    main: Merge branch 'topic' | +topic`,
    { 'a.md': ['10 Begin', '12 Rename', '13 Under the old name'] },
  ],
  [
    // The webhook reports that a.md is gone, too.
    'a name that a later file takes is that of the later file, and of the earlier one before',
    `main: Rename | a.md>b.md
    main: A new a | a.md
    main: Change b | b.md`,
    {
      'a.md b.md': ['10 b.md: Begin', '11 b.md: Rename', '12 a.md: A new a', '13 b.md: Change b'],
      'a.md': ['10 Begin', '11 Rename', '12 A new a'],
    },
  ],
  [
    'a pull request does not change a later file whose path it only moves another file away from',
    `main: And b | b.md
    topic: To c | a.md>c.md
    topic: To a | b.md>a.md
    main: ${topicMerge} | +topic
    main: A new b | b.md`,
    {
      'a.md b.md c.md': [
        ...['10 c.md: Begin', '11 a.md: And b', `14 a.md: ${merged} of To a`, `14 c.md: ${merged} of To c`],
        '15 b.md: A new b',
      ],
    },
  ],
  [
    'a clock that is ahead or behind does not change the order, and nothing is later than now',
    `main: Ten years ahead | a.md | @2036-01-01T00:00:00Z
    main: Right | a.md
    main: In 1970 | a.md | @1970-01-02T00:00:00Z
    main: Right again | a.md
    main: Ahead at the end | a.md | @2036-01-01T00:00:00Z`,
    {
      'a.md': ['10 Begin', '10 Ten years ahead', '12 Right', '12 In 1970', '14 Right again', '14 Ahead at the end'],
    },
  ],
  [
    'a commit from a clock that is behind leaves the times of the commits before it',
    `main: Landed and synced | a.md | @2026-03-01T12:00:00Z
    main: A minute behind | a.md | @2026-03-01T11:59:00Z`,
    { 'a.md': ['10 Begin', '03-01T12 Landed and synced', '03-01T12 A minute behind'] },
  ],
])('%s', async (_, written, expected) => {
  const clone = growOn(written)
  for (const [paths, entries] of Object.entries(expected)) {
    expect(await story(clone, { paths: paths.split(' ') })).toEqual(entries)
  }
})

describe('changes made in a merge commit', () => {
  /** Two sides that have changed the same file, and a merge of them that is not committed yet. */
  function beginMerge(path = 'a.md'): Clone {
    const clone = createClone()
    clone.change('Begin', path, { text: 'one\ntwo\nthree\nfour\nfive\n' })
    clone.changeOn('topic', 'On topic', path, { text: 'one\ntwo\nthree\nfour\nfive on topic\n' })
    clone.change('On main', path, { text: 'one on main\ntwo\nthree\nfour\nfive\n' })
    clone.git('merge', '--quiet', '--no-commit', 'topic')
    return clone
  }
  const both = ['10 Begin', '12 On main', '13 On topic']
  const byMerge = "13 Merge branch 'topic' by Bob"

  test.each(['a.md', 'a "quoted" \\ name.md', 'ä.md'])(
    'a change in %s that comes from neither side is an entry',
    async (path) => {
      const clone = beginMerge(path)
      clone.change("Merge branch 'topic'", path, {
        ...bob,
        text: 'one on main\ntwo\nthree, resolved\nfour\nfive on topic\n',
      })
      expect(await story(clone, { paths: [path] })).toEqual([...both, byMerge])
    },
  )

  test('a clean merge of two sides is no entry, nor is a change to another file', async () => {
    const clone = beginMerge()
    clone.change("Merge branch 'topic'", 'b.md', bob)
    expect(await story(clone)).toEqual(both)
    expect(await story(clone, { paths: ['b.md'] })).toEqual([byMerge])
  })

  test('a file that the merge removes is known to be removed', async () => {
    const clone = beginMerge()
    clone.git('rm', '--quiet', '--force', 'a.md')
    clone.commit("Merge branch 'topic'", bob)
    expect(await story(clone)).toEqual([...both, byMerge])
    expect((await plan(clone)).prompts[0]?.missing).toBe('was removed')
  })

  test('in the merge of a pull request it belongs to the pull request', async () => {
    const clone = beginMerge()
    clone.change(topicMerge, 'a.md', { ...bob, text: 'one on main\ntwo\nthree, resolved\nfour\nfive on topic\n' })
    expect(await story(clone)).toEqual([...both.slice(0, 2), `13 ${merged} by Bob of On topic`])
  })
})

describe('names', () => {
  test.each([
    ['b.md', 'c.md'],
    ['c.md', 'b.md'],
  ])('a path that two files had gives each its own commits: first to %s, then to %s', async (first, second) => {
    const clone = grow(`
      main: First at y | y.md=The,first,file.
      main: First to a | y.md>a.md
      main: First away | a.md>${first}
      main: Second at a | a.md=Another,file.
      main: Second away | a.md>${second}
      main: Third at a | a.md=And,a,third.`)
    expect(await story(clone, { paths: [], createGlobs: ['*.md'] })).toEqual([
      ...[`10 ${first}: First at y`, `11 ${first}: First to a`, `12 ${first}: First away`],
      ...[`13 ${second}: Second at a`, `14 ${second}: Second away`, '15 a.md: Third at a'],
    ])
  })

  test('a file that was renamed and removed keeps its history, and its link follows once it is there again', async () => {
    const clone = growOn(`
      main: Rename | a.md>b.md
      main: Remove | -b.md`)
    const found = { id: 'pmt_0', name: '', path: 'b.md', movedFrom: null, missing: 'was removed' }
    expect((await plan(clone)).prompts).toEqual([found])
    expect(await story(clone)).toEqual(['10 Begin', '11 Rename', '12 Remove'])
    clone.change('Add again', 'b.md')
    expect((await plan(clone)).prompts).toEqual([{ ...found, movedFrom: 'a.md', missing: null }])
    expect(await story(clone)).toEqual(['10 Begin', '11 Rename', '12 Remove', '13 Add again'])
  })

  test('the link of a file that passed through a path follows that file, not a later one of the path', async () => {
    const clone = growOn(`
      main: To b | a.md>b.md
      main: To c | b.md>c.md
      main: A new b | b.md
      main: To d | b.md>d.md`)
    expect((await plan(clone)).prompts).toMatchObject([{ path: 'c.md', movedFrom: 'a.md' }])
  })

  test('a link follows a file that one commit of a pull request moves, and another one rewrites', async () => {
    const clone = growOn(`
      topic: To b | a.md>b.md
      topic: Rewrite | b.md
      main: ${topicMerge} | +topic`)
    expect((await plan(clone, { createGlobs: ['*.md'] })).prompts).toMatchObject([{ path: 'b.md', movedFrom: 'a.md' }])
    expect(await story(clone)).toEqual(['10 Begin', `13 ${merged} of To b, Rewrite`])
  })

  test('says why a file is missing', async () => {
    const clone = begin()
    for (const path of ['gone.md', 'old.md', 'taken.md']) clone.write(path, `${path} ${'words '.repeat(20)}\n`)
    clone.commit('Add')
    clone.git('rm', '--quiet', 'gone.md')
    clone.git('mv', 'old.md', 'new.md')
    clone.git('mv', 'taken.md', 'other.md')
    const { git } = clone
    git('update-index', '--add', '--cacheinfo', `160000,${git('rev-parse', 'HEAD')},vendor/lib`)
    clone.commit('Change')
    const paths = ['gone.md', 'old.md', 'taken.md', 'other.md', 'never.md', 'vendor/lib/a.md']
    const { prompts } = await plan(clone, { paths })
    expect(prompts.map(({ path, movedFrom, missing }) => [path, movedFrom, missing])).toEqual([
      ['gone.md', null, 'was removed'],
      ['new.md', 'old.md', null],
      ['taken.md', null, 'was renamed to other.md, which another prompt is linked to'],
      ['other.md', null, null],
      ['never.md', null, 'was never on the branch'],
      ['vendor/lib/a.md', null, 'is in the submodule vendor/lib, a separate repository'],
    ])
  })

  test('prompts are created only for files, and named by their paths', async () => {
    const clone = createClone()
    for (const path of ['prompts/greeting.md', 'prompts/de/hallo.md', 'prompts/ö ß.md', 'prompts/x.txt'])
      clone.write(path)
    const { git, folder } = clone
    git('update-index', '--add', '--cacheinfo', `160000,${'1'.repeat(40)},prompts/module.md`)
    const blob = git('rev-parse', ':prompts/x.txt')
    git('update-index', '--add', '--cacheinfo', `120000,${blob},prompts/link.md`)
    const odd = ['\xff', 'tab\t', 'line\n', 'esc\x1b', ' ', `${'long/'.repeat(220)}x`]
    const stdin = Buffer.from(odd.map((name) => `100644 ${blob}\tprompts/${name}.md\0`).join(''), 'latin1')
    Bun.spawnSync(['git', '-C', folder, 'update-index', '-z', '--index-info'], { env: gitEnvironment, stdin })
    clone.commit('Add')
    const { prompts, skipped } = await plan(clone, { paths: [], createGlobs: ['prompts/**/*.md'] })
    const unusable = 'has a name that no prompt can have'
    expect(skipped).toEqual([
      { path: 'prompts/ .md', problem: unusable },
      { path: 'prompts/esc\\u{1b}.md', problem: unusable },
      { path: 'prompts/line\\u{a}.md', problem: unusable },
      { path: 'prompts/link.md', problem: 'is a symbolic link' },
      { path: `prompts/${'long/'.repeat(220)}`.slice(0, 200).concat('…'), problem: unusable },
      { path: 'prompts/module.md', problem: 'is a submodule' },
      { path: 'prompts/tab\\u{9}.md', problem: unusable },
      { path: 'prompts/\\xff.md', problem: 'has a name that is not UTF-8' },
    ])
    expect(prompts.map(({ path, name }) => [path, name])).toEqual([
      ['prompts/de/hallo.md', 'de/hallo'],
      ['prompts/greeting.md', 'greeting'],
      ['prompts/ö ß.md', 'ö ß'],
    ])
  })
})

describe('people and times', () => {
  test('a commit from a clock that is a little ahead landed now, not with the commit before', async () => {
    const clone = begin()
    clone.change('Pushed within a second', 'a.md', { at: '2026-06-01T00:00:02Z' })
    expect((await plan(clone)).entries.map(({ entry }) => entry.created_at)).toEqual([
      '2026-01-01T10:00:00.000Z',
      now.toISOString(),
    ])
  })

  test('a name in another encoding is read, and one that has nothing to show gets a word', async () => {
    const clone = begin()
    const commit = (message: string, name: string) => {
      clone.write('a.md')
      const script = `GIT_AUTHOR_NAME="$(printf '${name}')" git -c i18n.commitEncoding=ISO-8859-1 commit --quiet --message ${message}`
      Bun.spawnSync(['sh', '-c', script], { cwd: clone.folder, env: gitEnvironment })
    }
    commit('Latin', 'Bj\\366rn')
    commit('Control', '\\001\\002x')
    const { entries } = await plan(clone)
    expect(entries.slice(1).map(({ entry }) => entry.user.name)).toEqual(['Bj\u00f6rn', 'x'])
  })
})

test('a title is the first line of a message, cut to 200 characters and never within one', async () => {
  const clone = begin()
  clone.change('Warmer\tgreeting\n\nBecause.')
  clone.change(`${'x'.repeat(199)}👋`)
  clone.git('commit', '--quiet', '--amend', '--cleanup=verbatim', '--message', `\n\n${'x'.repeat(199)}👋`)
  clone.write('a.md')
  clone.git('commit', '--quiet', '--allow-empty-message', '--message', '')
  const { entries } = await plan(clone)
  expect(entries.map(({ entry }) => entry.title)).toEqual(['Begin', 'Warmer greeting', 'x'.repeat(199), null])
})

test('a broken author is recorded as unknown', async () => {
  const clone = begin()
  const { git, folder } = clone
  clone.change('Broken')
  const stdin = Buffer.from(git('cat-file', 'commit', 'HEAD').replace(/^(author|committer) .*$/gm, '$1 broken'))
  const args = ['hash-object', '-t', 'commit', '-w', '--stdin', '--literally']
  const { stdout } = Bun.spawnSync(['git', '-C', folder, ...args], { env: gitEnvironment, stdin })
  git('update-ref', 'refs/heads/main', stdout.toString().trim())
  const { entries } = await plan(clone)
  expect(entries.map(({ entry }) => entry.user)).toEqual([
    { name: 'Ada', email: 'ada@example.com' },
    { name: 'unknown', email: 'unknown' },
  ])
})

test('grafts do not cut the history', async () => {
  const clone = begin()
  clone.change('Change')
  await Bun.write(`${clone.folder}/.git/info/grafts`, `${clone.git('rev-parse', 'HEAD')}\n`)
  expect((await plan(clone)).commits.size).toBe(2)
})

test('a file that 4,000 commits rename back and forth is followed in seconds', () => {
  const commits: Commit[] = Array.from(
    { length: 4_000 },
    (_, position) => ({ position, parents: [] }) as unknown as Commit,
  )
  for (const [position, commit] of commits.entries()) commit.parents = commits.slice(position + 1, position + 2)
  const paths = ['a.md', 'b.md']
  const changes = new Map(
    commits.map((commit) => {
      const [path, from] = commit.position % 2 === 0 ? paths : paths.toReversed()
      return [commit, [{ path: path as string, from: from as string, isRemoved: false }]]
    }),
  )
  const branchCommits = commits.toReversed().map((commit) => {
    return { commit, parent: commit.parents[0] ?? null, landedWith: commit, merge: null }
  })
  const startedAt = process.cpuUsage()
  const promptAt = followFiles(commits, branchCommits, changes, new Map([['a.md', 'prompt']]))
  const found = commits.map((commit) => promptAt(commit, changes.get(commit)?.[0]?.path as string))
  expect(process.cpuUsage(startedAt).user).toBeLessThan(10_000_000)
  expect(new Set(found)).toEqual(new Set(['prompt']))
})

const gitlabMerge = "Merge branch 'topic' into 'main'\n\nTidy up\n\nSee merge request a/sub/p!12"
const giteaMerge = "Merge pull request 'Tidy up' (#12) from topic into main"

const githubMerge = 'Merge pull request #12 from a/topic\n\nTidy up\n\nAt last.'
const bitbucketMerge = 'Merged in topic (pull request #12)\n\nTidy up'
const dataCenterMerge =
  "Pull request #12: Tidy up\n\nMerge in A/p from topic to main\n\n* commit 'c0ffee1':\n  On topic"

test.each<[string, string, string | null, string?]>([
  ['https://github.com/a/p.git', githubMerge, 'https://github.com/a/p/pull/12'],
  ['git@github.com:a/p.git', 'Tidy up (#12)', 'https://github.com/a/p/pull/12'],
  ['git@gitlab.test:a/sub/p.git', gitlabMerge, 'https://gitlab.test/a/sub/p/-/merge_requests/12'],
  ['https://ci:token@gitlab.com/a/p.git', 'Tidy up (!12)', 'https://gitlab.com/a/p/-/merge_requests/12'],
  ['https://gitlab.com/a/p.git', 'Fix the issue (#12)', null],
  ['ssh://git@git.test:2222/a/p.git', giteaMerge, 'https://git.test/a/p/pulls/12'],
  ['https://codeberg.org/a/p', 'Tidy up (#12)', 'https://codeberg.org/a/p/pulls/12'],
  ['https://bitbucket.org/a/p', bitbucketMerge, 'https://bitbucket.org/a/p/pull-requests/12'],
  ['https://bitbucket.org/a/p.git', 'Fix the issue (#12)', null],
  ['https://git.test/scm/a/p.git', dataCenterMerge, 'https://git.test/projects/a/repos/p/pull-requests/12'],
  ['https://git.test/a/p.git', 'Pull request #12: Tidy up', null],
  ['https://git.test/a/p.git', 'Fix the issue (#12)', null],
  ['https://git.test/a/p.git', 'Tidy up (#12)', 'https://git.test/a/p/pull/12', 'GitHub Enterprise <github@test>'],
  ['https://github.com/a/p', 'Merge tidied files (#12)', 'https://github.com/a/p/pull/12'],
  ['https://github.com/a/p', 'Revert "Merge pull request #12 from a/topic"', null],
  ['https://github.com/a/p', 'Fix #12', null],
  ['https://github.com/a/p', 'Fix (#99999999999)', null],
])(
  'at %s the commit %j has the address %p, and the title of its pull request',
  async (origin, message, expected, ...[committer]) => {
    const clone = begin(origin)
    if (/^Merged? (?!.*\(!)|\nMerge in /.test(message)) {
      clone.changeOn('topic', 'On topic')
      clone.merge('topic', message)
    } else clone.change(message, 'a.md', committer ? { author: 'Ada <ada@example.com>', committer } : {})
    const { entries } = await plan(clone)
    const title = expected === null ? message : /tidy up|merge tidied files/i.exec(message)?.[0]
    expect(entries.slice(1).map(({ entry }) => [entry.action, entry.pr_url ?? null, entry.title])).toEqual([
      [expected === null ? 'deployed' : 'pr_merged', expected, title],
    ])
  },
)

test.each([
  ['gitea:3000/Acme/p', 'gitea:3000/acme/p'],
  ['git@git.test:acme/p.git', 'git.test/acme/p'],
  ['git.test:acme/p', 'git.test/acme/p'],
])('--repository %s is %s', async (repository, name) => {
  const { folder } = begin()
  const git = createGit(folder, gitEnvironment, new AbortController().signal)
  expect(await openRepository(git, folder, { branch: 'main', repository })).toMatchObject({ name })
})

test('commits that were not pushed are counted, not read', async () => {
  const { git, change, folder } = begin()
  const open = () =>
    openRepository(createGit(folder, gitEnvironment, new AbortController().signal), folder, {
      branch: 'main',
      repository: null,
    })
  const pushed = git('rev-parse', 'HEAD')
  expect(await open()).toMatchObject({ tip: pushed, unpushed: 0 })
  git('update-ref', 'refs/remotes/origin/main', 'HEAD')
  change('Not pushed')
  expect(await open()).toMatchObject({ tip: pushed, unpushed: 1 })
  git('checkout', '--quiet', '--detach')
  git('branch', '--quiet', '--delete', '--force', 'main')
  expect(await open()).toMatchObject({ tip: pushed, unpushed: 0 })
})

test('the authors of a merge are those of its commits, of a squash who wrote it', async () => {
  const marge = { author: 'Marge <marge@example.com>' }
  const clone = grow(`${beginning}
    topic: One | a.md | Bob
    topic: Two | a.md | Eve
    topic: Three | a.md | Bob
    topic: Elsewhere | b.md | Kim`)
  clone.merge('topic', topicMerge, marge)
  clone.change('Squashed (#4)', 'a.md', { ...bob, committer: marge.author })
  clone.change('Pushed', 'a.md', bob)
  const { entries } = await plan(clone)
  expect(entries.slice(1).map(({ entry }) => [entry.user.name, entry.authors])).toEqual([
    ['Marge', ['Bob', 'Eve']],
    ['Marge', ['Bob']],
    ['Bob', undefined],
  ])
})

test('a number of the host that the repository was at before has no address', async () => {
  const clone = begin('https://gitlab.com/a/p')
  for (const [index, message] of [githubMerge, gitlabMerge].entries()) {
    clone.changeOn(`topic-${index}`, 'On topic')
    clone.merge(`topic-${index}`, message)
  }
  const { entries } = await plan(clone)
  expect(entries.slice(1).map(({ entry }) => [entry.pr_number, entry.pr_url])).toEqual([
    [12, null],
    [12, 'https://gitlab.com/a/p/-/merge_requests/12'],
  ])
})

test.each([gitlabMerge, `${giteaMerge}\n`, githubMerge, bitbucketMerge, dataCenterMerge, 'Tidy up (#12)\n\nAt last.'])(
  'the message %j means the same with CRLF',
  (message) => {
    const meaning = parseMessage(message)
    expect(meaning).toMatchObject({ number: 12 })
    const other = message.replaceAll('\n', '\r\n')
    expect([parseMessage(other), titleOf(other, meaning)]).toEqual([meaning, 'Tidy up'])
  },
)
