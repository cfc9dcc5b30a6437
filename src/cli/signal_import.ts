import type { Input } from '../lib/input.ts'
import { monthOf } from '../lib/months.ts'
import { counted } from '../lib/texts.ts'
import { requirePrompt } from '../prompts/find.ts'
import { importSignals } from '../signals/import.ts'
import { createSignalRollup } from '../stats/rollup.ts'
import { onDatabase } from './database.ts'
import { keepLines } from './kept_lines.ts'

export const signalImportCommands = onDatabase([
  {
    usage: 'signals import FILE|- --prompt PROMPT',
    description:
      'imports past signals from the NDJSON or CSV of an export; known signals are skipped, and only ' +
      'those of the current month count towards its limit',
    readsFile: true,
    ifInterrupted: 'the signals recorded so far stay; run it again to import the rest',
    verifyWith: 'signals list --prompt PROMPT',
    async run({ db, clock, args, output, progress, input, interruption: { signal } }) {
      const prompt = await requirePrompt(db.sql, args.required('prompt'))
      const readLines = await keepLines(args.positional(0), input as Input, signal)
      const now = clock.now()
      const rollup = createSignalRollup(db, { patienceMs: Number.POSITIVE_INFINITY })
      const counts = await importSignals(db, now, rollup, prompt, readLines, (done, share) =>
        progress.count(done, 'signals', share),
      )
      const { recorded, known, refused } = counts
      if (args.options.json) output.show(counts)
      else output.say(`recorded ${recorded}, already known ${known}`)
      if (refused > 0) {
        throw new Error(
          `The monthly limit has no room for ${counted(refused, 'signal')} of this month. Raise the limit with ` +
            `"orgs set-plan", or wait until ${monthOf(now).resetsAt}. Then run the import again.`,
        )
      }
    },
  },
])
