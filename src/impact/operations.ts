import type { Clock } from '../clock.ts'
import type { Db, Sql } from '../db/client.ts'
import { EntryPath } from '../history/schema.ts'
import { defineOperations, operation } from '../http/operation.ts'
import { pageAnswer } from '../http/paging.ts'
import type { Deadline } from '../lib/deadline.ts'
import { linkPages, writeNumberedPage } from '../lib/numbered_page.ts'
import { invalidQuery, writeParams } from '../lib/params.ts'
import { findOwnPrompts, type Prompt, showPrompt } from '../prompts/find.ts'
import { PromptPath } from '../prompts/schema.ts'
import type { SignalRollup } from '../stats/rollup.ts'
import type { createChangeList } from './changes.ts'
import type { createOverview } from './overview.ts'
import { readImpactPage, readUpToDate } from './read.ts'
import { readChangeDays, readCompare } from './read_compare.ts'
import {
  ImpactPage,
  type ImpactQuery,
  impactParams,
  maxComparedPrompts,
  maxSortedPrompts,
  overviewParams,
  PromptImpactList,
} from './schema.ts'
import { ChangeImpactPage, changeListParams, maxListedChanges } from './schema_changes.ts'
import { ChangeDaysAnswer, compareParams, daysParams, SideBySideAnswer } from './schema_compare.ts'

type Needs = {
  db: Db
  clock: Clock
  rollup: SignalRollup
  readOverview: ReturnType<typeof createOverview>
  readChangeList: ReturnType<typeof createChangeList>
}

const read = <T>({ db, rollup }: Needs, prompt: Prompt, { deadline }: Deadline, work: (sql: Sql) => Promise<T>) =>
  readUpToDate(db, rollup, prompt, deadline, (inSnapshot) => inSnapshot(work))

export const impactOperations = defineOperations('Impact', {
  getPromptImpact: operation({
    method: 'GET',
    path: '/prompts/:prompt_id/impact',
    scope: 'signals:read',
    summary: 'Show the signals before and after each change of a prompt',
    description:
      'Lists the changes that went live (deployed, pr_merged), newest first: the signals of each, its rate, and the ' +
      'difference to its base. A signal belongs to the change that its metadata.commit_sha names, in full or by a unique ' +
      'prefix of at least 7 characters, else to the change that was live at its time. Filters select the changes to list; ' +
      'each is still compared with its base. With base and head, lists only these two, head first, and compares head with ' +
      'base.',
    params: PromptPath,
    query: impactParams,
    answer: { status: 200, description: 'One page of changes.', schema: ImpactPage, headers: ['Link'], shape: 'body' },
    tool: {
      name: 'get_impact',
      description:
        'For each change that went live, newest first: the rate before and after, the difference with an interval that holds however often one looks, and a verdict. This is no experiment: other things may have changed too.',
      takes: ['margin', 'since', 'until', 'limit', 'page'],
    },
    async run(needs: Needs, { prompt, params, query, context, headers }) {
      const [shown, page] = await Promise.all([
        showPrompt(needs.db, prompt),
        readUpToDate(needs.db, needs.rollup, prompt, context.deadline, (inSnapshot) =>
          readImpactPage(inSnapshot, prompt, query, needs.clock.now()),
        ),
      ])
      const { totalCount, data, rateChanged } = page
      const path = `${context.baseUrl}/api/v1/prompts/${params.prompt_id}/impact`
      headers.link = linkPages(query, totalCount, (number) => `${path}?${writeQuery(query, number)}`)
      return writeNumberedPage(query, totalCount, data, { prompt: shown, rate_changed: rateChanged })
    },
  }),
  listChanges: operation({
    method: 'GET',
    path: '/changes',
    scope: 'signals:read',
    summary: 'Show what the changes of all prompts did',
    description:
      'Lists the changes of all prompts that went live in a time, each as the impact of its prompt has it: worse first, then ' +
      'better, same, undecided and those without a base, each newest first; last those without signals. Compares ' +
      `at most the newest ${maxListedChanges} that match. Changes of archived prompts are listed only with prompt.`,
    query: changeListParams,
    answer: {
      status: 200,
      description: 'One page of changes.',
      schema: ChangeImpactPage,
      headers: ['Link'],
      shape: 'body',
    },
    tool: {
      name: 'list_changes',
      description: 'Like get_impact for the changes of all prompts, worse ones first, each in a sentence.',
      takes: ['since', 'verdict', 'search', 'limit'],
    },
    async run({ db, readChangeList }: Needs, { query, caller, context, headers }) {
      const { organisationId } = caller
      if (query.prompt !== null && !(await findOwnPrompts(db.sql, organisationId, [query.prompt])).size) {
        throw invalidQuery({ path: 'prompt', message: 'must be the id of a prompt of the organisation' })
      }
      const { totalCount, data, ...more } = await readChangeList(organisationId, query, context.deadline)
      const path = `${context.baseUrl}/api/v1/changes`
      headers.link = linkPages(query, totalCount, (page) => `${path}?${writeParams({ ...query, page })}`)
      return writeNumberedPage(query, totalCount, data, more)
    },
  }),
  getChangeDays: operation({
    method: 'GET',
    path: '/prompts/:prompt_id/impact/:entry_id/days',
    scope: 'signals:read',
    summary: 'Show how the difference of a change moved, day by day',
    description:
      'Compares a change with its base after each of its days, as the data is today, and shows what to look at before ' +
      'believing the difference.',
    params: EntryPath,
    query: daysParams,
    answer: { status: 200, description: 'The days of the change.', schema: ChangeDaysAnswer },
    run: (needs: Needs, { prompt, params, query, context }) =>
      read(needs, prompt, context, (sql) => readChangeDays(sql, prompt, params.entry_id, query.margin)),
  }),
  comparePrompt: operation({
    method: 'GET',
    path: '/prompts/:prompt_id/compare',
    scope: 'signals:read',
    summary: 'Compare two versions of a prompt that ran side by side',
    description:
      'Compares the signals that name two commits in metadata.commit_sha, day by day: only days with signals of both count, ' +
      'so what changes for both at the same time cancels out. The commits need not be in the history.',
    params: PromptPath,
    query: compareParams,
    answer: { status: 200, description: 'The comparison.', schema: SideBySideAnswer },
    tool: {
      name: 'compare_commits',
      description:
        'Compares two commits that ran side by side, by the commit_sha in the metadata of signals. It is an experiment only if users were assigned at random.',
      takes: ['base', 'head', 'since', 'until', 'margin', 'share'],
      required: ['base', 'head'],
    },
    run: (needs: Needs, { prompt, query, context }) =>
      read(needs, prompt, context, (sql) => readCompare(sql, prompt, query)),
  }),
  listImpact: operation({
    method: 'GET',
    path: '/impact',
    scope: 'signals:read',
    summary: 'Show the live change and the last 30 days of every prompt',
    description:
      'Lists the prompts of the organisation with what their live changes did, newest prompt first unless sorted. Sorts at ' +
      `most ${maxSortedPrompts} prompts, and compares the live changes of at most ${maxComparedPrompts}: with more, narrow the search.`,
    query: overviewParams,
    answer: pageAnswer('A page of prompts.', PromptImpactList),
    run: ({ readOverview }: Needs, { query, caller, context }) =>
      readOverview(caller.organisationId, query, context.deadline),
  }),
})

/** The same query for another page. */
const writeQuery = ({ pair, ...query }: ImpactQuery, page: number) => writeParams({ ...query, page, ...pair })
