import { gitEnvironment } from '../config.ts'
import { createGit } from '../git/program.ts'
import { openRepository } from '../git/repository.ts'
import { type SyncResult, syncRepository } from '../git/sync.ts'
import type { SyncChange } from '../git/sync_options.ts'
import { nameAuthors } from '../impact/sentence.ts'
import { requireFileName, writeFileAtomically } from '../lib/atomic_file.ts'
import { showNumber } from '../lib/repository_links.ts'
import type { Call } from '../lib/rest.ts'
import { counted, number, oneLine } from '../lib/texts.ts'
import { checkService, withApi } from './api.ts'
import { type Command, type Context, UsageError } from './command.ts'

export const commands: Command[] = [
  {
    usage:
      'sync [DIR] --org ORG|--url URL [--branch B] [--also] [--repository REPOSITORY|URL] [--create GLOB]… [--exclude GLOB]… [--map FILE] [--text] [--dry-run]',
    description: 'syncs prompt histories from a git clone; --create registers a prompt for every matching file',
    ifInterrupted: 'Run it again to complete the sync.',
    check(args) {
      checkService(args)
      if (args.options['dry-run'] && args.text('map') !== null) {
        throw new UsageError('--map is not written by a --dry-run')
      }
      if (args.list('exclude') && !args.list('create')) throw new UsageError('--exclude needs --create')
    },
    run: (context) => withApi(context, 'ci', sync),
  },
]

async function sync({ args, clock, output, progress, interruption }: Context, call: Call): Promise<void> {
  const isDryRun = args.options['dry-run'] === true
  const folder = args.positionals[0] ?? '.'
  const git = createGit(folder, gitEnvironment(), interruption.signal)
  const map = args.text('map')
  if (map !== null) await requireMapName(map)
  const given = { branch: args.text('branch'), repository: args.text('repository') }
  const repository = await openRepository(git, folder, given)
  const result = await syncRepository({
    git,
    repository,
    call,
    isDryRun,
    withTexts: args.options.text === true,
    isAlso: args.options.also === true,
    service: args.text('url') === null ? `--org ${args.text('org')}` : `--url ${args.text('url')}`,
    createGlobs: args.list('create') ?? [],
    excludeGlobs: args.list('exclude') ?? [],
    now: clock.now(),
    onProgress: progress.count,
    onChange(change) {
      if (args.options.json) output.show(change)
      else output.say(oneLine(describe(change, isDryRun)))
    },
  })
  // Readable by all: an application of another user may read the map at any time.
  if (map !== null) await writeFileAtomically(map, (put) => put(`${JSON.stringify(result.map, null, 2)}\n`), 0o666)
  if (repository.unpushed > 0) {
    const ahead = counted(repository.unpushed, 'commit')
    output.say(`The clone is ${ahead} ahead of origin/${oneLine(repository.branch)}: only pushed commits are read.`)
  }
  output.say(oneLine(summarise(result, `${repository.name} ${repository.branch}`, isDryRun)))
}

/** Fails before the sync begins, not after it. */
const requireMapName = (file: string): Promise<void> =>
  requireFileName(file).catch(({ message }) => {
    throw new Error(`--map: ${message}`)
  })

function describe(change: SyncChange, isDryRun: boolean): string {
  const { prompt, path } = change
  const name = `${prompt ?? 'a new prompt'} (${path})`
  switch (change.change) {
    case 'created':
      return isDryRun ? `${path}: would get a prompt "${change.name}"` : `${path}: created ${prompt} "${change.name}"`
    case 'moved':
      return `${name}: was renamed from ${change.from}${change.problem ? `; the link was not moved: ${change.problem}` : ''}`
    case 'skipped':
      return `${path}: skipped, because it ${change.problem}`
    case 'missing':
    case 'no_text':
      return `${name}: ${change.problem}`
    default: {
      const { action, user, authors = [], commit_sha, created_at, title } = change
      const number = change.pr_number ? ` ${showNumber(change)}` : ''
      const sign = { added: '+', changed: '~', unreachable: '-' }[change.change]
      const rest = change.change === 'unreachable' ? ` ${change.problem}` : title ? `: ${title}` : ''
      const entry = `${action}${number} ${commit_sha.slice(0, 8)} ${name} by ${nameAuthors({ user, authors })}`
      return `${sign} ${created_at?.slice(0, 10)} ${entry}${rest}`
    }
  }
}

function summarise(result: SyncResult, where: string, isDryRun: boolean): string {
  const { commits, prompts, added, changed, known, texts, unreadable, unreachable, withoutLiveBranch } = result
  const [add, change] = isDryRun ? ['would add', 'change'] : ['added', 'changed']
  const unknown = '; entries of unreachable commits were not looked for: the key lacks history:read'
  const gone = unreachable === null ? unknown : unreachable > 0 ? `, ${unreachable} not on the branch any more` : ''
  const read = `${counted(prompts, 'prompt')}, ${counted(commits, 'commit')}`
  const branchless = `; ${counted(withoutLiveBranch, 'prompt')} without a live branch: the key lacks prompts:write`
  const stored = texts > 0 ? `, stored ${counted(texts, 'text')}` : ''
  const lacking = unreadable > 0 ? `, ${counted(unreadable, 'text')} left out` : ''
  return `${where}: ${read}; ${add} ${counted(added, 'entry', 'entries')}, ${change} ${number(changed)}, ${number(known)} known${stored}${lacking}${gone}${withoutLiveBranch > 0 ? branchless : ''}`
}
