// Keys that are made, used and revoked by the command line, again and again.
import { run } from '../binary.ts'
import type { Cluster } from './cluster.ts'
import type { Findings } from './findings.ts'
import type { Replica } from './post.ts'
import { repeat } from './repeat.ts'

/** How soon a revoked key is rejected everywhere. */
const REVOKED_MS = 1_000
const RETRY_MS = 100
const GIVE_UP_MS = 8_000

/** Changes keys until it is stopped; the change under way is then finished, and checked. */
export function startKeyChanges({ replicas, settings, author }: Cluster): { stop(): Promise<Findings> } {
  const problems: string[] = []
  let revoked = 0

  async function use({ url }: Replica, key: string): Promise<number> {
    const headers = { authorization: `Bearer ${key}` }
    const path = `/api/v1/prompts/${author.prompt}/history?limit=1`
    const signal = AbortSignal.timeout(GIVE_UP_MS)
    return fetch(url + path, { headers, signal }).then(
      async (response) => {
        await response.body?.cancel()
        return response.status
      },
      () => 0,
    )
  }

  /** The command fails while the database is away; one that fails may have been carried out. */
  async function persist(args: string[]): Promise<Record<string, string>> {
    for (;;) {
      const { status, stdout } = await run([...args, '--json'], { settings })
      if (status === 0) return JSON.parse(stdout)
      await Bun.sleep(RETRY_MS)
    }
  }

  async function change(): Promise<void> {
    const { id = '', key = '' } = await persist(['keys', 'create', '--org', author.org])
    for (const replica of replicas) {
      const status = await use(replica, key)
      if (![0, 200, 500].includes(status)) problems.push(`a new key was answered ${status} by ${replica.name}`)
    }
    await persist(['keys', 'revoke', id])
    await Bun.sleep(REVOKED_MS)
    for (const replica of replicas) {
      const status = await use(replica, key)
      if (![0, 401, 500].includes(status)) problems.push(`a revoked key was answered ${status} by ${replica.name}`)
    }
    revoked += 1
  }

  const changing = repeat(change, 0)
  return {
    async stop() {
      await changing.stop()
      return { figures: `${revoked} keys made and revoked, wrong ${problems.length}`, problems }
    },
  }
}
