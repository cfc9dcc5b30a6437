/** The key of this tab. It is kept where only this tab finds it, and until the tab is closed. */
const place = 'prompt-signals key'

/** As soon as the page is there: a key behind the # of the address is taken over, and taken out of the address. */
export function takeKeyFromAddress(): boolean {
  const given = new URLSearchParams(location.hash.slice(1)).get('key')
  if (given === null) return false
  history.replaceState(history.state, '', location.pathname + location.search)
  keepKey(given)
  return true
}

export const currentKey = (): string | null => sessionStorage.getItem(place)

export const keepKey = (key: string): void => sessionStorage.setItem(place, key.trim())

export const forgetKey = (): void => sessionStorage.removeItem(place)
