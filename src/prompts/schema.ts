import { type Static, Type } from '@sinclair/typebox'
import { cursorPageOf, cursorPageParams } from '../lib/cursor_page.ts'
import { choiceParam, defineParams, type QueryOf, textParam } from '../lib/params.ts'
import { maxTextLength } from '../lib/texts.ts'
import { envelopeOf, nullable, printable, type Row } from '../lib/typebox.ts'

export const PromptId = Type.String({
  pattern: '^pmt_[0-9A-Za-z_-]{1,64}$',
  description: "The prompt's public ID",
  examples: ['pmt_greeting'],
})

export const PromptPath = Type.Object({ prompt_id: PromptId })

const maybeText = (description: string) => nullable(Type.String(), description)

const time = Type.String({ format: 'date-time' })
const repository = maybeText(
  'Repository that holds the prompt: host/path, or owner/name for one on github.com; null for none',
)
const path = maybeText('Path of its file there, from the root of the repository; null for none')

export const maxBranchLength = 255

export const BranchName = printable(maxBranchLength)

const liveBranch = nullable(
  BranchName,
  'The branch that is live: only its deployed and pr_merged entries are changes. Null: those of every branch are',
)

export const Prompt = Type.Object(
  {
    id: Type.String({ description: "The prompt's public ID" }),
    org: Type.String({ description: 'Public ID of its organisation' }),
    name: Type.String(),
    repository,
    path,
    file_state: Type.Union([Type.Literal('present'), Type.Literal('removed'), Type.Literal('renamed'), Type.Null()], {
      description:
        'How the file was last seen on the default branch; removed or renamed: the link is dead; null: not seen yet',
    }),
    file_moved_to: maybeText('Path that a renamed file has now, if it is known'),
    live_branch: liveBranch,
    archived: Type.Boolean({ description: 'Whether lists leave the prompt out. It still records.' }),
    last_entry_at: nullable(time, 'Time of the newest entry of its history; null for none'),
    created_at: time,
  },
  { title: 'Prompt' },
)

export type PromptRow = Row<typeof Prompt>

export const examplePrompt = {
  id: 'pmt_greeting',
  org: 'org_1aB2c3D4e5F6g7H8',
  name: 'Greeting',
  repository: 'acme/prompts',
  path: 'prompts/greeting.md',
  file_state: 'present',
  file_moved_to: null,
  live_branch: 'main',
  archived: false,
  last_entry_at: '2026-11-14T23:40:00.000Z',
  created_at: '2026-11-14T23:35:00.000Z',
}

/** What a list of prompts has. */
export const promptFilterParams = {
  search: textParam('Only prompts with this text in their name, ID or file path.'),
  archived: choiceParam(['false', 'true', 'all'], 'Without archived prompts, only archived ones, or all.', 'false'),
}

export const promptParams = defineParams({ ...cursorPageParams, ...promptFilterParams })

export type PromptFilters = Pick<QueryOf<typeof promptParams>, keyof typeof promptFilterParams>

export const PromptList = cursorPageOf(Prompt, examplePrompt)

export const ErasedFileList = cursorPageOf(
  Type.Object({ repository: Type.String(), path: Type.String() }, { title: 'ErasedFile' }),
  { repository: 'acme/prompts', path: 'prompts/README.md' },
)

export const RepositoryList = envelopeOf(
  Type.Array(
    Type.Object({ repository: Type.String(), prompts: Type.Integer({ format: 'int64' }) }, { title: 'Repository' }),
  ),
  'RepositoryList',
  [{ repository: 'acme/prompts', prompts: 281 }],
)

export const RepositoryRename = Type.Object(
  { old: Type.String({ description: 'The name that prompts are linked to' }), new: Type.String() },
  { title: 'RepositoryRename', examples: [{ old: 'acme/prompts', new: 'gitlab.com/acme/prompts' }] },
)

export type RepositoryRename = Static<typeof RepositoryRename>

export const RenamedRepository = envelopeOf(
  Type.Object({
    moved: Type.Integer({ description: 'Number of prompts that are linked to the new name now' }),
    left: Type.Integer({ description: 'Number of those that are not: another prompt is linked to their file there' }),
  }),
  'RenamedRepository',
  { moved: 281, left: 0 },
)

export const ShownPrompt = envelopeOf(Prompt, 'ShownPrompt', examplePrompt)

export const NewPrompt = Type.Object(
  {
    name: Type.String({ minLength: 1, maxLength: maxTextLength }),
    id: Type.Optional(
      Type.String({ description: 'A public ID of your own, pmt_ and 1 to 64 letters, digits, "_" or "-"' }),
    ),
    repository: Type.Optional(repository),
    path: Type.Optional(path),
    live_branch: Type.Optional(liveBranch),
  },
  {
    title: 'NewPrompt',
    examples: [{ name: 'Greeting', repository: 'acme/prompts', path: 'prompts/greeting.md' }],
  },
)

export type NewPrompt = Static<typeof NewPrompt>

export const PromptChange = Type.Partial(
  Type.Object({ ...Type.Omit(NewPrompt, ['id']).properties, archived: Prompt.properties.archived }),
  {
    title: 'PromptChange',
    examples: [{ name: 'Warm greeting' }],
  },
)

export type PromptChange = Static<typeof PromptChange>
