import { useState } from 'preact/hooks'
import { answerOf, api } from '../client/api.ts'
import { useSending } from '../client/form.ts'
import { useScopes } from '../client/own_key.ts'
import { refresh, useSteadyQuery } from '../client/query.ts'
import { href } from '../client/root.ts'
import { usePlace } from '../client/router.ts'
import type { Schemas } from '../client/schemas.ts'
import { Dialog } from '../parts/dialog.tsx'
import { Field, Input, Search } from '../parts/field.tsx'
import { Page } from '../parts/page.tsx'
import { Pager } from '../parts/pager.tsx'
import { Await, Empty, FailureNote } from '../parts/states.tsx'
import { Table } from '../parts/table.tsx'
import { Code, Text, When } from '../parts/text.tsx'
import { DialogButtons } from './key_changes.tsx'

type Prompt = Schemas['Prompt']

const asking = (search: string, cursor: string | undefined): [string, () => Promise<Schemas['PromptList']>] => [
  `prompts ${JSON.stringify([search, cursor])}`,
  () => {
    const query = { ...(search ? { search } : {}), ...(cursor ? { cursor } : {}) }
    return answerOf(api.GET('/api/v1/prompts', { params: { query } }))
  },
]

/** The prompts of the organisation and the files that they are kept in. */
export function PromptLinks() {
  const { query: given } = usePlace()
  const cursor = given.get('cursor') ?? undefined
  const search = given.get('find') ?? ''
  const query = useSteadyQuery(...asking(search, cursor))
  const mayChange = useScopes().includes('prompts:write')
  const [edited, setEdited] = useState<Prompt | 'new'>()
  const controls = (
    <>
      <Search search={search} />
      {mayChange && (
        <button type="button" class="primary" onClick={() => setEdited('new')}>
          New prompt
        </button>
      )}
    </>
  )
  return (
    <Page title="Prompts and links" actions={controls}>
      <Await query={query}>
        {({ data, pagination }) => (
          <>
            {data.length === 0 && search !== '' ? (
              <Empty title={`No prompt is like “${search}”`} />
            ) : data.length === 0 ? (
              <Empty title="There are no prompts yet">
                <p>Make one here, or on the machine of the service:</p>
                <pre>
                  <code>prompt-signals prompts create --org ORG --name greeting</code>
                </pre>
              </Empty>
            ) : (
              <Table
                caption="Prompts"
                rows={data}
                keyOf={({ id }) => id}
                columns={[
                  {
                    name: 'Name',
                    cell: ({ id, name }) => (
                      <>
                        <a href={href(`/prompts/${encodeURIComponent(id)}`)}>
                          <Text>{name}</Text>
                        </a>
                        <span class="detail">
                          <Code>{id}</Code>
                        </span>
                      </>
                    ),
                  },
                  { name: 'File', cell: (prompt) => <File prompt={prompt} /> },
                  { name: 'Made', cell: ({ created_at: time }) => <When time={time} /> },
                  ...(mayChange
                    ? [
                        {
                          name: 'Actions',
                          isQuiet: true,
                          cell: (prompt: Prompt) => (
                            <span class="row-actions">
                              <button type="button" class="small" onClick={() => setEdited(prompt)}>
                                Change<span class="visually-hidden"> {prompt.name}</span>
                              </button>
                            </span>
                          ),
                        },
                      ]
                    : []),
                ]}
              />
            )}
            <Pager isFirst={cursor === undefined} next={pagination.next_cursor} ask={(next) => asking(search, next)} />
          </>
        )}
      </Await>
      {edited && <EditPrompt prompt={edited === 'new' ? undefined : edited} onClose={() => setEdited(undefined)} />}
    </Page>
  )
}

const File = ({ prompt: { repository, path, file_state: state, file_moved_to: movedTo } }: { prompt: Prompt }) =>
  repository && path ? (
    <>
      <Text>{path}</Text> <span class="muted">in</span> <Text>{repository}</Text>
      {state === 'removed' && <span class="detail">The file was last seen removed.</span>}
      {state === 'renamed' && (
        <span class="detail">
          The file was last seen renamed{movedTo && ' to '}
          {movedTo && <Text>{movedTo}</Text>}.
        </span>
      )}
    </>
  ) : (
    <span class="muted">not linked</span>
  )

function EditPrompt({ prompt, onClose }: { prompt: Prompt | undefined; onClose(): void }) {
  const [name, setName] = useState(prompt?.name ?? '')
  const [repository, setRepository] = useState(prompt?.repository ?? '')
  const [path, setPath] = useState(prompt?.path ?? '')
  const { isSending, failure, send } = useSending()
  const submit = (event: Event) => {
    event.preventDefault()
    const body = { name, repository: repository.trim() || null, path: path.trim() || null }
    send(async () => {
      await answerOf<unknown>(
        prompt
          ? api.PATCH('/api/v1/prompts/{prompt_id}', { params: { path: { prompt_id: prompt.id } }, body })
          : api.POST('/api/v1/prompts', { body }),
      )
      refresh('prompt', 'audit')
      onClose()
    })
  }
  return (
    <Dialog title={prompt ? 'Change the prompt' : 'New prompt'} onClose={onClose}>
      <form onSubmit={submit}>
        <Field label="Name">{(tied) => <Input {...tied} value={name} isRequired onInput={setName} />}</Field>
        <Field label="Repository" hint="owner/name on GitHub; empty for none">
          {(tied) => <Input {...tied} value={repository} onInput={setRepository} />}
        </Field>
        <Field label="Path of its file" hint="from the root of the repository, as prompts/greeting.md">
          {(tied) => <Input {...tied} value={path} onInput={setPath} />}
        </Field>
        {failure && <FailureNote failure={failure} />}
        <DialogButtons isSending={isSending} does={prompt ? 'Save' : 'Make the prompt'} onClose={onClose} />
      </form>
    </Dialog>
  )
}
