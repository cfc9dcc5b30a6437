import { api, get, type Schemas } from '../client/api.ts'
import { useScopes } from '../client/organisation.ts'
import { change, useSending } from '../client/query.ts'
import { changeQuery, usePlace } from '../client/router.ts'
import { Button } from '../parts/button.tsx'
import { FormDialog, useDialog } from '../parts/dialog.tsx'
import { Input, Search, Select } from '../parts/field.tsx'
import { List } from '../parts/list.tsx'
import { Page } from '../parts/page.tsx'
import { FailureNote, Note } from '../parts/states.tsx'
import { actionsColumn } from '../parts/table.tsx'
import { Code, PromptLink, Text, When } from '../parts/text.tsx'
import { NoPrompts } from './next_step.tsx'

type Prompt = Schemas['Prompt']

/** The prompts of the organisation and the files that they are kept in. */
export function PromptLinks() {
  const { query } = usePlace()
  const search = query.get('find') ?? ''
  const archived = query.get('archived') === 'true' ? 'true' : 'false'
  const mayChange = useScopes().includes('prompts:write')
  const { dialog, show } = useDialog()
  const { failure, send } = useSending()
  const controls = (
    <>
      <Search search={search} />
      <Select
        label="Show"
        value={archived}
        options={Object.entries({ false: 'in use', true: 'archived' })}
        onChange={(value) => changeQuery({ archived: value === 'true' ? value : undefined, cursor: undefined })}
      />
      {mayChange && <Button look="primary" does="New prompt" onClick={() => show(EditPrompt, {})} />}
    </>
  )
  return (
    <Page title="Prompts and links" actions={controls}>
      {failure && <FailureNote failure={failure} />}
      <List
        caption="Prompts"
        pageAt={(cursor) => get('/api/v1/prompts', { query: { search, archived, cursor } })}
        keepPrevious
        empty={() =>
          archived === 'true' ? (
            <Note title="No archived prompts" />
          ) : search ? (
            <Note title={`No prompts match “${search}”`} />
          ) : (
            <NoPrompts />
          )
        }
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
          mayChange &&
            actionsColumn<Prompt>(
              ({ name }) => name,
              (prompt) => ({
                Edit: () => show(EditPrompt, { prompt }),
                [prompt.archived ? 'Restore' : 'Archive']: () => send(() => archive(prompt)),
              }),
            ),
        ]}
      />
      {dialog}
    </Page>
  )
}

/** Hides a prompt from lists, or shows it again. It records signals and history all the while. */
function archive({ id, archived }: Prompt) {
  const params = { path: { prompt_id: id } }
  const asked = api.PATCH('/api/v1/prompts/{prompt_id}', { params, body: { archived: !archived } })
  return change<unknown>(asked, '/api/v1/prompts', '/api/v1/impact')
}

const File = ({
  prompt: { repository, path, file_state: state, file_moved_to: movedTo, live_branch: branch },
}: {
  prompt: Prompt
}) =>
  repository && path ? (
    <>
      <Text>{path}</Text> <span class="muted">in</span> <Text>{repository}</Text>
      {branch && (
        <span class="detail">
          live branch <Text>{branch}</Text>
        </span>
      )}
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

function EditPrompt({ prompt, onClose }: { prompt?: Prompt; onClose(): void }) {
  const submit = (form: FormData) => {
    const text = (name: string) => form.get(name) as string
    const body = {
      name: text('name'),
      repository: text('repository').trim() || null,
      path: text('path').trim() || null,
      live_branch: text('live_branch').trim() || null,
    }
    const asked = prompt
      ? api.PATCH('/api/v1/prompts/{prompt_id}', { params: { path: { prompt_id: prompt.id } }, body })
      : api.POST('/api/v1/prompts', { body })
    return change<unknown>(asked, '/api/v1/prompts', '/api/v1/impact')
  }
  return (
    <FormDialog
      title={prompt ? 'Edit prompt' : 'New prompt'}
      does={prompt ? 'Save' : 'Create prompt'}
      onSubmit={submit}
      onClose={onClose}
    >
      <Input label="Name" name="name" maxLength={200} defaultValue={prompt?.name} required />
      <Input
        label="Repository"
        hint="owner/name on GitHub, or host/path such as gitlab.com/acme/prompts. Leave empty for none."
        name="repository"
        defaultValue={prompt?.repository ?? ''}
      />
      <Input
        label="File path"
        hint="From the root of the repository, such as prompts/greeting.md"
        name="path"
        defaultValue={prompt?.path ?? ''}
      />
      <Input
        label="Live branch"
        hint="Only what reaches this branch counts as a change. Leave empty for every branch."
        name="live_branch"
        maxLength={255}
        defaultValue={prompt?.live_branch ?? ''}
      />
    </FormDialog>
  )
}
