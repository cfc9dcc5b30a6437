import { type Static, Type } from '@sinclair/typebox'
import { numberedPageOf, numberedPageParams } from '../lib/numbered_page.ts'
import { choiceParam, defineParams, param, type QueryOf, textParam, timeParam } from '../lib/params.ts'
import { Prompt, PromptId, promptFilterParams } from '../prompts/schema.ts'
import { exampleImpact, Impact, marginParam, verdictNames } from './schema.ts'

const patternParam = (pattern: RegExp, description: string, expected: string) =>
  param(
    Type.String({ pattern: pattern.source, description }),
    (text) => (pattern.test(text) ? text : undefined),
    expected,
  )

/** Name one pull request or commit. */
export const requestParams = {
  pr: patternParam(
    /^([1-9]\d{0,9}|https?:\/\/\S{1,2000})$/,
    'Only changes of the pull request with this number or address.',
    'the number or the address of a pull request',
  ),
  commit: patternParam(
    /^[\x21-\x7e]{7,100}$/,
    'Only changes of this commit. A hash may be shortened.',
    'a hash, or at least its first 7 characters',
  ),
}

export const changeListParams = defineParams({
  ...numberedPageParams,
  since: timeParam('Only changes that went live from this ISO 8601 time on.'),
  until: timeParam('Only changes that went live up to this ISO 8601 time, inclusive.'),
  verdict: choiceParam(verdictNames, 'Only changes that have signals and this verdict.'),
  search: promptFilterParams.search,
  author: textParam('Only changes by people with this text in their name.'),
  prompt: patternParam(new RegExp(PromptId.pattern as string), 'Only changes of this prompt.', 'the id of a prompt'),
  ...requestParams,
  margin: marginParam,
})

export type ChangeListQuery = QueryOf<typeof changeListParams>

/** Bounds the time of a list. */
export const maxListedChanges = 500

const ChangeImpact = Type.Object(
  {
    prompt: Type.Object(Type.Pick(Prompt, ['id', 'name', 'repository', 'path']).properties, { title: 'ChangedPrompt' }),
    ...Impact.properties,
    sentence: Type.String({ description: 'The verdict in words' }),
  },
  { title: 'ChangeImpact' },
)

export type ChangeImpact = Static<typeof ChangeImpact>

/** In the order of a list. */
export const verdictOrder = ['worse', 'better', 'same', 'undecided', 'not_compared', 'without_signals'] as const

type Group = (typeof verdictOrder)[number]

export const noChanges = Object.fromEntries(verdictOrder.map((name) => [name, 0])) as Record<Group, number>

/** What a change is counted under. */
export const groupOf = ({ signals, verdict }: Pick<Impact, 'signals' | 'verdict'>): Group =>
  signals.total === 0 ? 'without_signals' : (verdict ?? 'not_compared')

export const ChangeImpactPage = numberedPageOf(
  ChangeImpact,
  'ChangeImpactPage',
  [
    {
      prompt: { id: 'pmt_greeting', name: 'Greeting', repository: 'acme/prompts', path: 'prompts/greeting.md' },
      ...exampleImpact,
      sentence:
        'Undecided since PR #7: 80.0 → 70.0 % positive (−10.0 points, between −22.0 and +2.1). About 1,600 more signals would decide it.',
    },
  ],
  {
    properties: {
      counts: Type.Object(Object.fromEntries(verdictOrder.map((name) => [name, Type.Integer()])), {
        title: 'ChangeCounts',
        description: 'How many changes were compared, by verdict. Those without signals have their own number.',
      }),
      complete: Type.Boolean({
        description: `False if older changes are left out: at most ${maxListedChanges} are compared, fewer on a busy service`,
      }),
    },
    example: { counts: { ...noChanges, undecided: 1 }, complete: true },
  },
)
