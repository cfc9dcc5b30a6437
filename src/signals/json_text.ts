// Reads texts that JSON.parse has found to be right, where what was sent is wanted rather than what JavaScript makes of it.

export const [quote, comma, colon, backslash] = [0x22, 0x2c, 0x3a, 0x5c] as const
export const [openList, closeList, openObject, closeObject] = [0x5b, 0x5d, 0x7b, 0x7d] as const

/** Where the token ends that begins here; whitespace and punctuation are one character each. */
export function endOfToken(text: string, at: number, code: number): number {
  if (code === quote) return endOfString(text, at)
  let end = at + 1
  if (isPartOfWord(code)) while (end < text.length && isPartOfWord(text.charCodeAt(end))) end += 1
  return end
}

/** Looks from quote to quote, which takes a tenth of the time of a look at each character of a long string. */
function endOfString(text: string, at: number): number {
  for (let end = text.indexOf('"', at + 1); ; end = text.indexOf('"', end + 1)) {
    let escapes = 0
    while (text.charCodeAt(end - 1 - escapes) === backslash) escapes += 1
    if (escapes % 2 === 0) return end + 1
  }
}

/** Whether the character belongs to a number, true, false or null. */
const isPartOfWord = (code: number): boolean =>
  code > 0x20 &&
  code !== comma &&
  code !== colon &&
  code !== closeList &&
  code !== closeObject &&
  code !== openList &&
  code !== openObject

/** The texts of the items of an object's member that is a list. Of a member given twice, the last one counts. */
export function cutItems(object: string, name: string): string[] {
  let items: string[] = []
  let depth = 0
  let awaitsName = false
  let isWanted = false
  let start = 0
  for (let at = 0; at < object.length; ) {
    const code = object.charCodeAt(at)
    const end = endOfToken(object, at, code)
    if (isWanted && depth === 2 && (code === comma || code === closeList)) {
      const item = object.slice(start, at).trim()
      if (item !== '') items.push(item)
    }
    if (code === openObject || code === openList) {
      depth += 1
      awaitsName = depth === 1
      if (isWanted && depth === 2) [items, start] = [[], end]
    } else if (code === closeObject || code === closeList) {
      depth -= 1
    } else if (code === comma) {
      awaitsName = depth === 1
      if (depth === 2) start = end
    } else if (code === quote && awaitsName) {
      isWanted = JSON.parse(object.slice(at, end)) === name
      awaitsName = false
    }
    at = end
  }
  return items
}
