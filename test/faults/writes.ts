// Clients that write history entries and deliver pushes of GitHub through both replicas, and a ledger of the answers.
import { createHmac, randomUUID } from 'node:crypto'
import { push, sha } from '../github/payloads.ts'
import { type Replica, type Reply, send, type Tenant } from './post.ts'
import { persist, type Repetition, repeat, together } from './repeat.ts'

/** A tenant with a webhook, and a prompt that is linked to a file, beside its other one. */
export type Author = Tenant & { linkedPrompt: string; secret: string }

type Kind = 'entry' | 'delivery'

/** A request to write one history entry, known by its commit. */
type WriteAttempt = Reply & { kind: Kind; commit: string }

export type WriteLedger = { attempts: WriteAttempt[]; unanswered: string[] }

export const REPOSITORY = 'faults/prompts'
export const PATH = 'prompt.md'

const WRITERS: Kind[] = ['entry', 'entry', 'entry', 'entry', 'delivery', 'delivery', 'delivery']
const PAUSE_MS = 20

let commits = 0

export const createWriteLedger = (): WriteLedger => ({ attempts: [], unanswered: [] })

export const startWriters = (ledger: WriteLedger, replicas: Replica[], author: Author): Repetition =>
  together(
    WRITERS.map((kind, index) =>
      repeat((turn) => write(ledger, replicas, createRequest(author, kind), turn), PAUSE_MS, index),
    ),
  )

type WriteRequest = { kind: Kind; commit: string; path: string; headers: Record<string, string>; body: string }

function createRequest(author: Author, kind: Kind): WriteRequest {
  const commit = sha(`faults ${++commits}`)
  if (kind === 'entry') {
    const user = { name: 'Ada', email: 'ada@example.com' }
    return {
      kind,
      commit,
      path: `/api/v1/prompts/${author.prompt}/history`,
      // Without it, a repeat after another deployment would be a rollback.
      headers: { authorization: `Bearer ${author.key}`, 'idempotency-key': commit },
      body: JSON.stringify({ action: 'deployed', user, commit_sha: commit, branch_name: 'main' }),
    }
  }
  // GitHub gives whole seconds.
  const at = `${new Date().toISOString().slice(0, 19)}Z`
  const commitsOfPush = [{ id: commit, modified: [PATH] }]
  const body = JSON.stringify(push({ repository: REPOSITORY, after: commit, at, commits: commitsOfPush }))
  const headers = {
    'x-github-event': 'push',
    'x-github-delivery': randomUUID(),
    'x-hub-signature-256': `sha256=${createHmac('sha256', author.secret).update(body).digest('hex')}`,
  }
  return { kind, commit, path: `/webhooks/github/${author.org}`, headers, body }
}

/** Sends the request until it is acknowledged, and every other time once more. */
async function write(ledger: WriteLedger, replicas: Replica[], request: WriteRequest, turn: number): Promise<void> {
  let wanted = turn % 2 === 0 ? 2 : 1
  const isDone = await persist(replicas, turn, async (replica) => {
    const { kind, commit, path, headers, body } = request
    const reply = await send(replica, path, headers, body)
    ledger.attempts.push({ kind, commit, ...reply })
    const { status } = reply
    if (status === 200 || status === 201) wanted -= 1
    if (wanted === 0 || (status >= 400 && status < 500)) return 'done'
    return status === 0 || status === 503 ? 'failed' : 'again'
  })
  if (!isDone) ledger.unanswered.push(request.commit)
}
