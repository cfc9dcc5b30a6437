import type { ImpactSource } from '../impact/command_source.ts'
import { openRest, type Rest } from '../lib/rest.ts'
import { isPromptId } from '../prompts/find.ts'
import { type Arguments, type Context, UsageError } from './command.ts'
import { withDatabase } from './database.ts'

export function checkUrl(args: Arguments): void {
  const url = args.text('url')
  if (url !== null && !/^https?:\/\/[^/]/.test(url)) throw new UsageError('--url must begin with http:// or https://')
}

/** The service that --url names, for a key with this preset; null without --url, for the database. */
export function openService({ args, config, interruption }: Context, preset: 'ci' | 'reader'): Rest | null {
  const url = args.text('url')
  if (url === null) return null
  const key = config.PROMPT_SIGNALS_KEY
  if (key === undefined) throw new Error(`Set PROMPT_SIGNALS_KEY to an API key of the service (preset ${preset}).`)
  return openRest(url, key, interruption.signal)
}

/** Works on the service that --url names, or on the database. */
export async function withSource(
  context: Context,
  work: (context: Context, source: ImpactSource) => Promise<void>,
): Promise<void> {
  const { openDatabaseSource, openHttpSource } = await import('../impact/command_source.ts')
  const service = openService(context, 'reader')
  if (!service) {
    return withDatabase(context, (opened) =>
      work(opened, openDatabaseSource(opened.db, opened.clock, opened.args.text('org'))),
    )
  }
  const prompt = context.args.text('prompt')
  if (prompt !== null && !isPromptId(prompt)) throw new UsageError('--prompt must be an id (pmt_…) with --url')
  await work(context, openHttpSource(service))
}
