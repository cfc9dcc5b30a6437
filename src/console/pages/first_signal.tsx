import { useEffect, useState } from 'preact/hooks'
import { get } from '../client/api.ts'
import { useScopes } from '../client/organisation.ts'
import { refresh, useQuery } from '../client/query.ts'
import { href } from '../client/router.ts'
import { Copied } from '../parts/copy.tsx'

const lookMs = 3_000

/** Whether a prompt without signals gets its first one while its page is open. */
export function useFirstSignal(prompt: string, isEmpty: boolean): 'known' | 'awaited' | 'arrived' {
  const [wasEmpty, setWasEmpty] = useState(false)
  const path = { prompt_id: prompt }
  const asked = get('/api/v1/prompts/{prompt_id}/signals', { path, query: { limit: 1 } })
  const { data, reload } = useQuery(isEmpty || wasEmpty ? asked : undefined)
  const isAwaited = data?.data.length === 0
  const hasArrived = wasEmpty && data !== undefined && !isAwaited
  useEffect(() => {
    if (!isAwaited) return
    setWasEmpty(true)
    const timer = setInterval(() => document.hidden || reload(), lookMs)
    return () => clearInterval(timer)
  }, [isAwaited])
  useEffect(() => {
    if (hasArrived) refresh('/api/v1/prompts/{prompt_id}/')
  }, [hasArrived])
  return hasArrived ? 'arrived' : isAwaited ? 'awaited' : 'known'
}

/** A commit may have any printable character. */
const quoted = (commit: string): string => JSON.stringify(commit).slice(1, -1).replace(/'/g, '\\u0027')

/** How to record the first signal of a prompt, and whether it has arrived. */
type FirstSignalProps = { prompt: string; commit?: string | undefined; hasArrived: boolean }

export function FirstSignal({ prompt, commit, hasArrived }: FirstSignalProps) {
  const mayCreate = useScopes().includes('keys:write')
  const root = new URL(href('/'), location.href).href.replace(/\/$/, '')
  const command = `curl -X POST -H "Authorization: Bearer $KEY" \\
  -H 'Content-Type: application/json' \\
  -d '{"value":"positive","metadata":{"commit_sha":"${commit ? quoted(commit) : `'$COMMIT'`}"}}' \\
  '${root}/api/v1/prompts/${encodeURIComponent(prompt)}/signals'`
  const lines = `import { createClient } from 'prompt-signals-client'
const client = createClient({ url: '${root}', key: process.env.KEY })
await client.signals.record('${prompt}', 'positive', { commit: ${commit ? `'${quoted(commit)}'` : 'process.env.COMMIT'} })`
  return (
    <div class="note">
      <p class="note-title" role="status">
        {hasArrived ? '✓ The first signal has arrived' : 'Waiting for the first signal'}
      </p>
      {!hasArrived && (
        <>
          <p>
            Put a {mayCreate ? <a href={href('/settings/keys')}>key</a> : 'key'} for <strong>app</strong> into{' '}
            <code>KEY</code>
            {!commit && (
              <>
                , the deployed commit into <code>COMMIT</code>
              </>
            )}
            , and record one. By its commit, a signal counts for the right change:
          </p>
          <Copied text={command} of="the command" />
          <p>Or with the client for JavaScript:</p>
          <Copied text={lines} of="the lines of JavaScript" />
        </>
      )}
    </div>
  )
}
