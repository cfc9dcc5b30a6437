// Repositories for the tests, made with git as their authors would.
import { mkdirSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { createGit } from '../../src/git/program.ts'
import { openRepository } from '../../src/git/repository.ts'
import { syncRepository } from '../../src/git/sync.ts'
import type { SyncOptions } from '../../src/git/sync_options.ts'
import { openRest } from '../../src/lib/rest.ts'
import { createFolder, PROGRAM } from '../program.ts'

export type Clone = ReturnType<typeof createClone>

export type CommitOptions = {
  author?: string
  committer?: string
  /** ISO 8601; an hour after the commit before unless given. */
  at?: string
}

const begin = Date.UTC(2026, 0, 1, 9)
const hourMs = 3_600_000

/** The environment for git, in which nothing of the machine's own configuration counts. */
export const gitEnvironment = {
  PATH: process.env.PATH,
  HOME: '/nonexistent',
  GIT_CONFIG_GLOBAL: '/dev/null',
  GIT_CONFIG_NOSYSTEM: '1',
  LC_ALL: 'C',
  ...{ GIT_AUTHOR_NAME: 'Ada', GIT_AUTHOR_EMAIL: 'ada@example.com' },
  ...{ GIT_COMMITTER_NAME: 'Ada', GIT_COMMITTER_EMAIL: 'ada@example.com' },
}

export function runGit(folder: string, args: string[], env: Record<string, string | undefined> = {}): string {
  const { exitCode, stdout, stderr } = Bun.spawnSync(['git', '-C', folder, ...args], {
    env: { ...gitEnvironment, ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  if (exitCode !== 0) throw new Error(`git ${args.join(' ')} failed: ${stderr}`)
  return stdout.toString().trimEnd()
}

export function createClone(origin: string | null = 'https://github.com/acme/prompts.git') {
  const folder = join(createFolder(), 'clone')
  let commits = 0
  Bun.spawnSync(['git', 'init', '--quiet', '--initial-branch=main', folder], { env: gitEnvironment })
  if (origin) runGit(folder, ['remote', 'add', 'origin', origin])

  function by({ author = 'Ada <ada@example.com>', committer = author, at }: CommitOptions = {}) {
    commits += 1
    const date = at ?? new Date(begin + commits * hourMs).toISOString()
    const [, authorName, authorEmail] = /^(.*) <(.*)>$/.exec(author) ?? []
    const [, committerName, committerEmail] = /^(.*) <(.*)>$/.exec(committer) ?? []
    return {
      ...{ GIT_AUTHOR_NAME: authorName, GIT_AUTHOR_EMAIL: authorEmail, GIT_AUTHOR_DATE: date },
      ...{ GIT_COMMITTER_NAME: committerName, GIT_COMMITTER_EMAIL: committerEmail, GIT_COMMITTER_DATE: date },
    }
  }

  /** Runs git, and returns what it writes; it must succeed. */
  const git = (...args: string[]): string => runGit(folder, args)
  const head = () => git('rev-parse', 'HEAD')
  const backTo = (branch: string) => git('switch', '--quiet', branch)
  const branch = (name: string, from = 'HEAD') => git('switch', '--quiet', '--create', name, from)

  /** Writes a file and stages it. */
  function write(path: string, text = `${path} ${Math.random()}\n`): void {
    mkdirSync(dirname(join(folder, path)), { recursive: true })
    writeFileSync(join(folder, path), text)
    git('add', '--', path)
  }
  /** Commits what is staged, an hour after the commit before, and returns the hash. */
  function commit(message: string, more?: CommitOptions): string {
    runGit(folder, ['commit', '--quiet', '--allow-empty', '--message', message], by(more))
    return head()
  }
  /** Writes a file and commits it. */
  function change(message: string, path = 'a.md', { text, ...more }: CommitOptions & { text?: string } = {}): string {
    write(path, text)
    return commit(message, more)
  }
  return {
    folder,
    git,
    write,
    commit,
    change,
    branch,
    backTo,
    /** A commit on a new branch; the clone is on main then. */
    changeOn(name: string, ...given: Parameters<typeof change>): void {
      branch(name)
      change(...given)
      backTo('main')
    },
    move(from: string, to: string, message: string): string {
      git('mv', from, to)
      return commit(message)
    },
    merge(branch: string, message: string, more?: CommitOptions): string {
      runGit(folder, ['merge', '--quiet', '--no-ff', '--message', message, ...branch.split(',')], by(more))
      return head()
    },
  }
}

/**
 * A repository as one text, with a line for each commit: `BRANCH: MESSAGE | WHAT …| AUTHOR or @TIME`. A new branch begins
 * at the commit before, or with `BRANCH<OTHER` at the other branch. What it does: `a.md` changes a file, `a.md=text` writes
 * it, `a.md>b.md` moves it, `-a.md` removes it, `+topic` merges a branch, `+one,two` merges both. At the end the clone is on
 * main.
 */
export function grow(story: string, origin?: string, clone = createClone(origin)): Clone {
  const branches = new Set(['main'])
  let current = 'main'
  for (const line of story.split('\n').flatMap((one) => one.trim() || [])) {
    const [, branch = '', from, message = '', what = '', name, at] = commitLine.exec(line) ?? []
    const by = { ...(name && { author: `${name} <${name.toLowerCase()}@example.com>` }), ...(at && { at }) }
    if (!branches.has(branch)) clone.branch(branch, from)
    else if (branch !== current) clone.backTo(branch)
    branches.add(branch)
    current = branch
    const merged = /^ \+(\S+)$/.exec(what)?.[1]
    if (merged !== undefined) {
      clone.merge(merged, withBreaks(message), by)
      continue
    }
    for (const [, path = '', sign, rest = ''] of what.matchAll(/(-?[^\s=>]+)(?:([=>])([^ ]*))?/g)) {
      if (path.startsWith('-')) clone.git('rm', '--quiet', path.slice(1))
      else if (sign === '>') clone.git('mv', path, rest)
      else clone.write(path, sign && withBreaks(rest))
    }
    clone.commit(withBreaks(message), by)
  }
  if (current !== 'main') clone.backTo('main')
  return clone
}

const commitLine = /^([^\s<]+)(?:<(\S+))?: (.*?) \|(.*?)(?: \| (?:(\w+)|@(\S+)))?$/

const withBreaks = (text: string): string => text.replaceAll('\\r', '\r').replaceAll('\\n', '\n')

/** The address of a source tree with these files, whose build gives the binary. */
export async function createSource(...files: string[]): Promise<string> {
  const clone = createClone(null)
  for (const file of files) clone.write(file, await Bun.file(file).text())
  const build = `mkdir dist && ln -s ${PROGRAM} dist`
  clone.change('Begin', 'package.json', { text: JSON.stringify({ scripts: { build } }) })
  return `file://${clone.folder}`
}

/** Syncs a clone over HTTP, as the command does. */
export async function syncClone({ folder }: Clone, url: string, key: string, more: Partial<SyncOptions> = {}) {
  const { signal } = new AbortController()
  const git = createGit(folder, gitEnvironment, signal)
  const repository = await openRepository(git, folder, { branch: null, repository: null })
  const silent = { onProgress() {}, onChange() {} }
  return syncRepository({
    git,
    repository,
    call: openRest(url, key, signal),
    isDryRun: false,
    createGlobs: [],
    excludeGlobs: [],
    now: new Date(),
    service: '--url https://example.com',
    ...silent,
    ...more,
  })
}
