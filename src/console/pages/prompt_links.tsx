import { api, get, type Schemas } from '../client/api.ts'
import { useScopes } from '../client/organisation.ts'
import { change, onlyChanged, useSending } from '../client/query.ts'
import { usePlace } from '../client/router.ts'
import { Button } from '../parts/button.tsx'
import { FormDialog, useDialog } from '../parts/dialog.tsx'
import { Input } from '../parts/field.tsx'
import { Choice, Search, useChoice } from '../parts/filters.tsx'
import { List } from '../parts/list.tsx'
import { Page } from '../parts/page.tsx'
import { FailureNote, Note } from '../parts/states.tsx'
import { actionsColumn } from '../parts/table.tsx'
import { Code, Named, Ours, PromptLink, Text, When } from '../parts/text.tsx'
import { NoPrompts } from './next_step.tsx'

type Prompt = Schemas['Prompt']

const shown = { '': 'in use', true: 'archived' }

/** The prompts of the organisation and the files that they are kept in. */
export function PromptLinks() {
  const { query } = usePlace()
  const search = query.get('find') ?? ''
  const archived = useChoice('archived', shown) || 'false'
  const mayChange = useScopes().includes('prompts:write')
  const { dialog, show } = useDialog()
  const { failure, send } = useSending()
  const controls = (
    <>
      <Search />
      <Choice label="Show" name="archived" options={shown} />
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
            cell: ({ id, name }) => <Named name={<PromptLink id={id} name={name} />} detail={<Code>{id}</Code>} />,
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

function File({ prompt }: { prompt: Prompt }) {
  const { repository, path, file_state: state, file_moved_to: movedTo, live_branch: branch } = prompt
  if (!repository || !path) return <span class="muted">not linked</span>
  const place = branch ? `${repository}, live branch ${branch}` : repository
  const renamed = state === 'renamed' && `The file was renamed${movedTo ? ` to ${movedTo}` : ''}.`
  const problem = state === 'removed' ? 'The file was removed.' : renamed
  return (
    <>
      <Named name={<Text>{path}</Text>} detail={<Text>{place}</Text>} />
      {problem && (
        <span class="detail">
          <Ours>{problem}</Ours>
        </span>
      )}
    </>
  )
}

function EditPrompt({ prompt, onClose }: { prompt?: Prompt; onClose(): void }) {
  const submit = async (form: FormData) => {
    const text = (name: string) => form.get(name) as string
    const given = {
      name: text('name'),
      repository: text('repository').trim() || null,
      path: text('path').trim() || null,
      live_branch: text('live_branch').trim() || null,
    }
    const names = ['/api/v1/prompts', '/api/v1/impact']
    if (!prompt) return change<unknown>(api.POST('/api/v1/prompts', { body: given }), ...names)
    const params = { path: { prompt_id: prompt.id } }
    const body = onlyChanged(given, prompt)
    return body && change<unknown>(api.PATCH('/api/v1/prompts/{prompt_id}', { params, body }), ...names)
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
