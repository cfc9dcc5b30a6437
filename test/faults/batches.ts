// Sends signals in batches, and returns of each the answer that a request for it alone would have got.
import type { Attempt, Replica, SignalRequest } from './post.ts'
import { GIVE_UP_MS } from './post.ts'

type Result = { status: number; id?: number; created_at?: string; replayed?: true; error?: object }

/** All of one tenant. A batch that is not answered is no answer to any of its signals. */
export async function postBatch(replica: Replica, requests: SignalRequest[]): Promise<Attempt[]> {
  const sentAt = performance.now()
  const { tenant } = requests[0] as SignalRequest
  const signals = requests.map((request) => ({
    value: 'positive',
    metadata: { request: request.id },
    ...(request.keyed ? { idempotency_key: request.id } : {}),
  }))
  const attempts = (answers: Pick<Attempt, 'outcome' | 'status' | 'text' | 'replayed'>[]) =>
    requests.map((request, index) => ({
      request,
      replica: replica.name,
      sentAt,
      ms: performance.now() - sentAt,
      ...(answers[index] as (typeof answers)[number]),
    }))
  try {
    const response = await fetch(`${replica.url}/api/v1/prompts/${tenant.prompt}/signals/batch`, {
      method: 'POST',
      headers: { authorization: `Bearer ${tenant.key}`, 'content-type': 'application/json' },
      body: JSON.stringify({ signals }),
      signal: AbortSignal.timeout(GIVE_UP_MS),
    })
    const text = await response.text()
    if (response.status !== 200) {
      return attempts(requests.map(() => ({ outcome: 'answered', status: response.status, text, replayed: false })))
    }
    const { data } = JSON.parse(text) as { data: Result[] }
    return attempts(
      data.map(({ status, replayed = false, ...rest }) => ({
        outcome: 'answered',
        status,
        text: JSON.stringify(status === 201 ? { data: rest } : rest),
        replayed,
      })),
    )
  } catch {
    return attempts(requests.map(() => ({ outcome: 'failed', status: 0, text: '', replayed: false })))
  }
}
