import { Elysia } from 'elysia'
import type { Db } from '../db/client.ts'
import type { HeavyReads } from '../db/heavy_reads.ts'
import { notFound } from '../errors.ts'
import { visibleTo } from '../http/caller.ts'
import { describeOperation } from '../http/describe.ts'
import type { RouteWrapper } from '../http/middleware.ts'
import { searchOf } from '../http/paging.ts'
import { parseId } from '../lib/params.ts'
import type { PromptFinder } from '../prompts/find.ts'
import { showPrompt } from '../prompts/manage.ts'
import { alwaysInDiff, EntryDiff, EntryPath } from './schema.ts'
import { diffParams } from './schema_params.ts'

type Services = { db: Db; findPrompt: PromptFinder['find']; heavyReads: HeavyReads }
type EntryParams = { prompt_id: string; entry_id: string }

const showing = describeOperation({
  id: 'getHistoryDiff',
  tag: 'History',
  summary: 'Show what a change did to the text',
  description:
    'Returns the text of the prompt after a change and before it, and the difference. Texts are known if the organisation ' +
    'stores them and a sync or a batch gave them.',
  path: EntryPath,
  query: diffParams,
  success: { status: 200, description: 'The texts and their difference.', schema: EntryDiff },
})

export const diffRoutes = ({ db, findPrompt, heavyReads }: Services, { authenticated }: RouteWrapper) =>
  new Elysia({ name: 'diff' }).get(
    '/api/v1/prompts/:prompt_id/history/:entry_id/diff',
    authenticated('prompts:read', async (context, { prompt_id, entry_id }: EntryParams, caller) => {
      const { organisationId } = caller
      const prompt = await findPrompt(organisationId, prompt_id)
      const id = parseId(entry_id)
      if (id === undefined) throw notFound()
      const { base } = diffParams.parse(searchOf(context.request))
      const { path } = await showPrompt(db, prompt)
      const { readDiff } = await import('./diff.ts')
      const read = () => readDiff(db.sql, prompt, path ?? prompt_id, id, base)
      const { entry, base: before, ...texts } = await heavyReads(organisationId, read)
      const show = (row: object) => visibleTo(caller, 'history:read', row, alwaysInDiff)
      return context.replyData({ entry: show(entry), base: before && show(before), ...texts })
    }),
    { detail: showing },
  )
