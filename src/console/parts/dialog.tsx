import type { ComponentChildren, FunctionComponent } from 'preact'
import { useEffect, useRef, useState } from 'preact/hooks'
import { useSending } from '../client/query.ts'
import { Button } from './button.tsx'
import { Form } from './field.tsx'
import { focusWithout } from './focus.ts'
import { FailureNote } from './states.tsx'

type DialogProps = {
  title: string
  /** Escape does not close it. */
  isKept?: boolean
  onClose(): void
  children: ComponentChildren
}

/** A question or a form in front of the page. The browser keeps the focus in it. */
export function Dialog({ title, isKept = false, onClose, children }: DialogProps) {
  const dialog = useRef<HTMLDialogElement>(null)
  useEffect(() => {
    const opener = document.activeElement as HTMLElement | null
    dialog.current?.showModal()
    const row = opener?.closest('tr')
    return () => {
      // A dialog that is removed while it is open does not give the focus back. The opener may be gone by then, too.
      opener?.focus()
      focusWithout(row)
    }
  }, [])
  // Browsers let a second Escape through to the dialog, but not one that the page has handled.
  const keep = (event: KeyboardEvent) => isKept && event.key === 'Escape' && event.preventDefault()
  return (
    <dialog
      ref={dialog}
      aria-label={title}
      onKeyDown={keep}
      onCancel={(event) => isKept && event.preventDefault()}
      onClose={onClose}
    >
      <h2>{title}</h2>
      {children}
    </dialog>
  )
}

/** The dialog that a page has open, if any. `show` opens another. */
export function useDialog() {
  const [dialog, setDialog] = useState<ComponentChildren>()
  const show = <Props extends object>(Content: FunctionComponent<Props & { onClose(): void }>, props: Props) =>
    setDialog(<Content {...props} onClose={() => setDialog(undefined)} />)
  return { dialog, show }
}

type FormDialogProps = DialogProps & {
  does: string
  onSubmit(form: FormData): Promise<unknown>
  /** Does not close after the change. */
  staysOpen?: boolean
}

/** A form whose button sends a change; what is wrong with it is said above the button. */
export function FormDialog({ does, onSubmit, staysOpen, children, ...dialog }: FormDialogProps) {
  const { isSending, failure, send } = useSending()
  const submit = async (form: FormData) => {
    await onSubmit(form)
    if (!staysOpen) dialog.onClose()
  }
  return (
    <Dialog {...dialog} isKept={isSending || dialog.isKept === true}>
      <Form onSubmit={(form) => isSending || send(() => submit(form))}>
        {children}
        <div ref={(problem) => failure && problem?.scrollIntoView({ block: 'nearest' })}>
          {failure && <FailureNote failure={failure} />}
        </div>
        <div class="row buttons">
          <Button does="Cancel" onClick={() => isSending || dialog.onClose()} />
          {/* Disabled, it would lose the focus. */}
          <button type="submit" class="primary" aria-disabled={isSending}>
            {does}
          </button>
        </div>
      </Form>
    </Dialog>
  )
}
