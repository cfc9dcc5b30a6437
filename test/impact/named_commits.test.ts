import { afterAll, beforeAll, expect, test } from 'bun:test'
import fc from 'fast-check'
import { requirePrompt } from '../../src/prompts/find.ts'
import { startService, type TestService } from '../service.ts'
import { addSignals, countSignals, deployed } from './history.ts'

let service: TestService

beforeAll(async () => {
  service = await startService()
})

afterAll(() => service.close())

/** Texts of two letters, so that many begin others, or lie between a commit and what it begins with. */
const text = fc.string({ unit: fc.constantFrom('a', 'b'), minLength: 5, maxLength: 11 })
const few = fc.uniqueArray(text, { minLength: 1, maxLength: 8 })
const many = fc.uniqueArray(text, { minLength: 50, maxLength: 150 })

test('of many texts that signals have for a commit, those are found that a change begins with or has', async () => {
  const at = '2026-10-01T00:00:00.000Z'
  await fc.assert(
    fc.asyncProperty(few, many, async (known, texts) => {
      const { prompt } = await service.createTenant()
      await service.addHistory(
        prompt,
        known.map((commit) => deployed(commit, at)),
      )
      await addSignals(
        service,
        prompt,
        texts.map((commit) => ({ value: 'positive' as const, commit, at })),
      )
      await countSignals(service, prompt)
      const { sql } = service.services.db
      const { id } = await requirePrompt(sql, prompt)
      const found = await sql<{ text: string }>`select text from commits_named_in_counts(${id}) text`
      const names = (text: string) =>
        known.some((commit) => commit === text || (text.length >= 7 && commit.startsWith(text)))
      expect(found.map(({ text }) => text)).toEqual(texts.filter(names).toSorted())
    }),
    { numRuns: 30, seed: Number(process.env.TEST_SEED ?? 15) },
  )
})
