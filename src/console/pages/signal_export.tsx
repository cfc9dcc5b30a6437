import { answerOf, api } from '../client/api.ts'
import { useSending } from '../client/form.ts'
import { FailureNote } from '../parts/states.tsx'

type Format = 'csv' | 'ndjson'
type ExportProps = { prompt: string; filters: Record<string, string> }

/** Saves the signals as a file. The interface exports by value and time, and leaves filters on the metadata to the reader. */
export function SignalExport({ prompt, filters }: ExportProps) {
  const { isSending, failure, send } = useSending()
  const save = (format: Format) => () =>
    send(async () => {
      const named = Object.entries(filters).filter(([name]) => !name.startsWith('metadata.'))
      const query = { ...Object.fromEntries(named), format }
      const params = { path: { prompt_id: prompt }, query }
      const asked = api.GET('/api/v1/prompts/{prompt_id}/signals/export', { params, parseAs: 'blob' })
      saveAs(await answerOf<Blob>(asked), `${prompt}.${format}`)
    })
  return (
    <div class="export">
      Export
      {(['csv', 'ndjson'] as const).map((format) => (
        <button key={format} type="button" class="small" disabled={isSending} onClick={save(format)}>
          {format.toUpperCase()}
        </button>
      ))}
      {failure && <FailureNote failure={failure} />}
    </div>
  )
}

function saveAs(content: Blob, name: string): void {
  const link = document.createElement('a')
  link.href = URL.createObjectURL(content)
  link.download = name
  link.click()
  URL.revokeObjectURL(link.href)
}
