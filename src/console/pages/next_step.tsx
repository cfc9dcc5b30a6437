// What to do next where there is nothing to see yet: one step, with the ids of the organisation.
import type { ComponentChildren } from 'preact'
import { get, type Schemas } from '../client/api.ts'
import { useOwnKey, useScopes } from '../client/organisation.ts'
import { useQuery } from '../client/query.ts'
import { href } from '../client/router.ts'
import { Copied } from '../parts/copy.tsx'
import { Await, Note } from '../parts/states.tsx'
import { Text } from '../parts/text.tsx'

/** A text of an organisation as one word of a shell. */
export const quote = (text: string): string => (/^[\w./-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`)

type StepProps = { title: string; command: string; of?: string; children?: ComponentChildren }

/** A step with a command that can be copied. */
export const Step = ({ title, command, of = 'the command', children }: StepProps) => (
  <Note title={title}>
    {children}
    <Copied text={command} of={of} />
  </Note>
)

const useOrganisation = () => useOwnKey()?.organisation.id ?? 'ORG'

/** No prompt exists. */
export function NoPrompts() {
  const org = useOrganisation()
  return (
    <Step title="Bring your prompts from git" command={`prompt-signals sync --org ${org} --create 'prompts/**/*.md'`}>
      <p>
        In a clone of your repository, on the machine of the service: creates a prompt for each file that matches, and
        records every change of it.{' '}
        {useScopes().includes('prompts:write') && (
          <>
            Or create one in the <a href={href('/settings/prompts')}>settings</a>.
          </>
        )}
      </p>
    </Step>
  )
}

/** No change went live in this time, or none at all. */
export function NoChanges() {
  const query = useQuery(get('/api/v1/impact', { query: { limit: 1, sort: 'last_change' } }))
  return (
    <Await query={query}>
      {({ data: [first] }) => {
        if (!first) return <NoPrompts />
        if (first.latest) return <Note title="No change went live in this time" />
        return <NoHistory prompt={first.prompt} />
      }}
    </Await>
  )
}

/** A prompt whose history is empty: it is not linked to its file, or the repository was not read yet. */
export function NoHistory({ prompt: { id, repository, path } }: { prompt: Schemas['Prompt'] }) {
  const org = useOrganisation()
  if (repository && path) {
    return (
      <Step title="No change has gone live yet" of="the sync command" command={`prompt-signals sync --org ${org}`}>
        <p>
          The prompt is linked to <Text>{path}</Text> in <Text>{repository}</Text>. Read its history in a clone of that
          repository, on the machine of the service:
        </p>
      </Step>
    )
  }
  return (
    <Step
      title="No change has gone live yet"
      of="the linking command"
      command={`prompt-signals prompts link ${quote(id)} --repository OWNER/NAME --path prompts/greeting.md`}
    >
      <p>
        Link the prompt to its file
        {useScopes().includes('prompts:write') && (
          <>
            , in the <a href={href('/settings/prompts')}>settings</a> or on the machine of the service
          </>
        )}
        :
      </p>
    </Step>
  )
}
