/** When what had the focus is gone, its row has it, or the heading if that is gone too. */
export function focusWithout(row: HTMLElement | null | undefined): void {
  if (!row || document.activeElement !== document.body) return
  row.tabIndex = -1
  const target = row.isConnected ? row : document.querySelector('h1')
  target?.focus()
}
