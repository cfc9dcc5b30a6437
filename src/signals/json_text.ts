// Cuts values out of JSON that JSON.parse has accepted, exactly as they were sent.

export const [quote, comma, colon, backslash] = [0x22, 0x2c, 0x3a, 0x5c] as const
export const [openList, closeList, openObject, closeObject] = [0x5b, 0x5d, 0x7b, 0x7d] as const

/** The end of the token that starts here. Whitespace and punctuation are one character each. */
export function endOfToken(text: string, at: number, code: number): number {
  if (code === quote) return endOfString(text, at)
  let end = at + 1
  if (isPartOfWord(code)) while (end < text.length && isPartOfWord(text.charCodeAt(end))) end += 1
  return end
}

/** Jumps from quote to quote, which is faster than looking at each character. */
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

/** The JSON of each item in the list that is an object's member. Of a member given twice, the last one counts. */
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
