/** Control characters, those that turn the direction of text, and halves of characters. */
const harmful = /[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}]/gu
/** As JSON writes them: `\u001b`. */
const escaped = (text: string) =>
  Array.from({ length: text.length }, (_, at) => `\\u${text.charCodeAt(at).toString(16).padStart(4, '0')}`).join('')

/** Returns a name of a caller's as it may be printed within a line. */
export const printable = (name: string): string => name.replaceAll(harmful, escaped)

/** Returns a text in which no program that shows it sees a link. */
export const unlinked = (text: string): string => text.replaceAll('://', ':\\u002f\\u002f')

/** An address, or a word. */
const quotedMax = 64

/** Returns a text of a caller's as a message to people may have it: in quotes, on its line, no link, and not long. */
export function quoted(text: string): string {
  const shown = unlinked(printable(text)).replaceAll('"', '\\"')
  return `"${shown.length > quotedMax ? `${shown.slice(0, quotedMax - 1)}…` : shown}"`
}
