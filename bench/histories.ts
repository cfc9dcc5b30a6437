import { createWriteStream } from 'node:fs'
import { join } from 'node:path'
import { finished } from 'node:stream/promises'

/** Writes a file of entries for `history import`, a minute apart, of the prompts in round. */
export async function writeHistory(folder: string, prompts: string[], number: number): Promise<string> {
  const file = join(folder, `history-${Bun.randomUUIDv7()}.jsonl`)
  const stream = createWriteStream(file)
  const start = Date.UTC(2020, 0, 1)
  for (let index = 0; index < number; index += 1) {
    const entry = {
      prompt: prompts[index % prompts.length],
      action: 'deployed',
      user: { name: 'Ada Example', email: 'ada@example.com' },
      commit_sha: (index * 7919).toString(16).padStart(40, '0'),
      branch_name: 'main',
      created_at: new Date(start + index * 60_000).toISOString(),
    }
    if (!stream.write(`${JSON.stringify(entry)}\n`)) await new Promise((resolve) => stream.once('drain', resolve))
  }
  stream.end()
  await finished(stream)
  return file
}
