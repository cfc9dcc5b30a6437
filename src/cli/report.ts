import type { ImpactSource } from '../impact/command_source.ts'
import { markdownStyle, type ReportQuery, readReport, textStyle, writeReport } from '../impact/report.ts'
import { describeChange } from '../impact/sentence.ts'
import { dayMs, parseTime } from '../lib/times.ts'
import { type Arguments, type Command, type Context, UsageError } from './command.ts'
import { checkUrl, withSource } from './remote.ts'

export const commands: Command[] = [
  {
    usage:
      'report [--org ORG|--url URL] [--prompt PROMPT] [--since 7d] [--pr N|URL] [--commit SHA] ' +
      '[--format text|markdown|json]',
    description: 'shows the changes of a time with their verdicts, for a pull request, a job summary or an e-mail',
    check(args) {
      checkUrl(args)
      const places = [args.text('org'), args.text('url')].filter((place) => place !== null)
      if (places.length > 1) throw new UsageError('give either --org or --url')
      if (places.length === 0 && args.text('prompt') === null) throw new UsageError('give --org, --url or --prompt')
      reportQuery(args, new Date(0))
    },
    run: (context) => withSource(context, showReport),
  },
]

async function showReport({ args, clock, config, output }: Context, source: ImpactSource): Promise<void> {
  const query = reportQuery(args, clock.now())
  const changes = await readReport(source, query)
  const format = args.options.json ? 'json' : args.text('format')
  if (format === 'json') {
    const lines = changes.map((change) => `${JSON.stringify({ ...change, sentence: describeChange(change) })}\n`)
    return output.text(lines.join(''))
  }
  const consoleUrl = args.text('url')?.replace(/\/+$/, '') ?? config.PUBLIC_URL ?? ''
  const style = format === 'markdown' ? markdownStyle : textStyle
  output.text(writeReport(changes, query.since, style, format === 'markdown' ? consoleUrl : ''))
}

/** How far back a report looks; further for a pull request or a commit, which is only one. */
const [defaultDays, defaultDaysOfOne] = [7, 90]

function reportQuery(args: Arguments, now: Date): ReportQuery {
  const [pullRequest, commit] = [args.text('pr'), args.text('commit')]
  if (pullRequest !== null && commit !== null) throw new UsageError('give either --pr or --commit')
  if (pullRequest !== null && !/^([1-9]\d{0,9}|https?:\/\/\S+)$/.test(pullRequest)) {
    throw new UsageError(`--pr must be the number or the address of a pull request, not "${pullRequest}"`)
  }
  if (commit !== null && !/^[\x21-\x7e]{7,100}$/.test(commit)) {
    throw new UsageError(`--commit must be a hash, or at least its first 7 characters, not "${commit}"`)
  }
  const days = pullRequest === null && commit === null ? defaultDays : defaultDaysOfOne
  const text = args.text('since') ?? `${days}d`
  const given = /^(\d{1,5})d$/.exec(text)
  const since = given ? new Date(now.getTime() - Number(given[1]) * dayMs) : parseTime(text)
  if (!since) throw new UsageError(`--since must be a number of days such as 7d, or an ISO 8601 time, not "${text}"`)
  return { since, prompt: args.text('prompt'), pullRequest, commit: commit?.toLowerCase() ?? null }
}
