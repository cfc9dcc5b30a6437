import { type Static, Type } from '@sinclair/typebox'
import { envelopeOf, literals, printable } from '../lib/typebox.ts'
import { exampleEntry, maxTextBytes, NewHistoryEntry, promptId } from './schema.ts'

export const maxBatchEntries = 500
/** GitHub lists no more commits of a push, so of a larger merge the others have no entries that it could replace. */
export const maxCoveredCommits = 2_048

/** What was read in a repository, for several prompts. */
export const HistoryBatch = Type.Object(
  {
    entries: Type.Array(
      Type.Composite([
        Type.Object({
          prompt_id: promptId,
          covers: Type.Optional(
            Type.Array(printable(100), {
              maxItems: maxCoveredCommits,
              description:
                'For pr_merged: the commits that the pull request brought to the branch. They get no entries.',
            }),
          ),
        }),
        NewHistoryEntry,
        Type.Object({
          text: Type.Optional(
            Type.String({
              maxLength: maxTextBytes,
              description:
                `The text that the prompt's file has after the change, at most ${maxTextBytes / 1024} KiB. ` +
                'The organisation must have store_text on.',
            }),
          ),
        }),
      ]),
      { maxItems: maxBatchEntries },
    ),
    files: Type.Optional(
      Type.Array(
        Type.Object({
          prompt_id: promptId,
          state: literals(['present', 'removed']),
          seen_at: Type.String({
            format: 'date-time',
            description: 'When the file was seen. ISO 8601 with its zone; a later time than now counts as now.',
          }),
        }),
        { maxItems: maxBatchEntries, description: 'Whether the files of prompts are on the branch.' },
      ),
    ),
    with_texts: Type.Optional(
      Type.Boolean({ description: 'Return without_text. The organisation must have store_text on.' }),
    ),
    dry_run: Type.Optional(Type.Boolean({ description: 'Return the outcomes without recording anything.' })),
  },
  {
    title: 'HistoryBatch',
    examples: [
      {
        entries: [{ prompt_id: 'pmt_greeting', ...exampleEntry, covers: ['9c1185a5c5e9fc54612808977ee8f548b2258d31'] }],
      },
    ],
  },
)

export type HistoryBatch = Static<typeof HistoryBatch>

export const HistoryBatchResult = envelopeOf(
  Type.Object({
    outcomes: Type.Array(literals(['added', 'changed', 'known', 'covered']), {
      description:
        'The outcome of each entry, in the order given. added: the entry is new; changed: a known entry was improved; ' +
        'known: nothing changed; covered: the commit belongs to a pull request whose merge is in the history',
    }),
    without_text: Type.Optional(
      Type.Array(Type.Integer(), {
        description:
          'With with_texts: the positions of entries that went live and whose text is not stored, counted from 0. Send ' +
          'these again with their texts.',
      }),
    ),
  }),
  'HistoryBatchResult',
  { outcomes: ['added'] },
)
