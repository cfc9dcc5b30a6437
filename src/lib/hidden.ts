/** Characters without a shape, except those that join or colour an emoji. */
const hidden = /(?!(?<=\p{Emoji}|\ufe0f)(?:\u200d|\ufe0f))\p{Default_Ignorable_Code_Point}/gu

/** Escapes characters that nobody sees, which could hide words or turn the writing direction: `\u{202e}`. */
export const showHidden = (text: string): string =>
  text.replace(hidden, (character) => `\\u{${character.codePointAt(0)?.toString(16)}}`)
