import { useState } from 'preact/hooks'
import { answerOf, api, get } from '../client/api.ts'
import { useScopes } from '../client/organisation.ts'
import { refresh } from '../client/query.ts'
import { usePlace } from '../client/router.ts'
import type { Schemas } from '../client/schemas.ts'
import { Button } from '../parts/button.tsx'
import { FormDialog } from '../parts/dialog.tsx'
import { Input, Search } from '../parts/field.tsx'
import { List } from '../parts/list.tsx'
import { Page } from '../parts/page.tsx'
import { Code, PromptLink, Text, When } from '../parts/text.tsx'
import { NoPrompts } from './prompts.tsx'

type Prompt = Schemas['Prompt']

/** The prompts of the organisation and the files that they are kept in. */
export function PromptLinks() {
  const search = usePlace().query.get('find') ?? ''
  const mayChange = useScopes().includes('prompts:write')
  const [edited, setEdited] = useState<Prompt | 'new'>()
  const controls = (
    <>
      <Search search={search} />
      {mayChange && <Button look="primary" does="New prompt" onClick={() => setEdited('new')} />}
    </>
  )
  return (
    <Page title="Prompts and links" actions={controls}>
      <List
        caption="Prompts"
        pageAt={(cursor) => get('/api/v1/prompts', { query: { search, cursor } })}
        keepPrevious
        empty={() => <NoPrompts search={search}>Create one here, or on the machine of the service:</NoPrompts>}
        keyOf={({ id }) => id}
        columns={[
          {
            name: 'Name',
            cell: ({ id, name }) => (
              <>
                <PromptLink id={id} name={name} />
                <span class="detail">
                  <Code>{id}</Code>
                </span>
              </>
            ),
          },
          { name: 'File', cell: (prompt) => <File prompt={prompt} /> },
          { name: 'Created', cell: ({ created_at }) => <When time={created_at} /> },
          mayChange && {
            name: 'Actions',
            isQuiet: true,
            cell: (prompt) => (
              <span class="row-actions">
                <Button look="small" does="Edit" to={prompt.name} onClick={() => setEdited(prompt)} />
              </span>
            ),
          },
        ]}
      />
      {edited && <EditPrompt prompt={edited === 'new' ? undefined : edited} onClose={() => setEdited(undefined)} />}
    </Page>
  )
}

const File = ({ prompt: { repository, path, file_state: state, file_moved_to: movedTo } }: { prompt: Prompt }) =>
  repository && path ? (
    <>
      <Text>{path}</Text> <span class="muted">in</span> <Text>{repository}</Text>
      {state === 'removed' && <span class="detail">The file was removed.</span>}
      {state === 'renamed' && (
        <span class="detail">
          The file was renamed{movedTo && ' to '}
          {movedTo && <Text>{movedTo}</Text>}.
        </span>
      )}
    </>
  ) : (
    <span class="muted">not linked</span>
  )

function EditPrompt({ prompt, onClose }: { prompt: Prompt | undefined; onClose(): void }) {
  const submit = async (form: FormData) => {
    const text = (name: string) => form.get(name) as string
    const body = {
      name: text('name'),
      repository: text('repository').trim() || null,
      path: text('path').trim() || null,
    }
    await answerOf<unknown>(
      prompt
        ? api.PATCH('/api/v1/prompts/{prompt_id}', { params: { path: { prompt_id: prompt.id } }, body })
        : api.POST('/api/v1/prompts', { body }),
    )
    refresh('/api/v1/prompts', '/api/v1/audit')
    onClose()
  }
  return (
    <FormDialog
      title={prompt ? 'Edit prompt' : 'New prompt'}
      does={prompt ? 'Save' : 'Create prompt'}
      onSubmit={submit}
      onClose={onClose}
    >
      <Input label="Name" name="name" maxLength={500} defaultValue={prompt?.name} required />
      <Input
        label="Repository"
        hint="owner/name on GitHub, or host/path such as gitlab.com/acme/prompts. Leave empty for none."
        name="repository"
        maxLength={500}
        defaultValue={prompt?.repository ?? ''}
      />
      <Input
        label="File path"
        hint="From the root of the repository, such as prompts/greeting.md"
        name="path"
        maxLength={500}
        defaultValue={prompt?.path ?? ''}
      />
    </FormDialog>
  )
}
