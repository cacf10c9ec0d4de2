const quote = 0x22
const backslash = 0x5c
const openBrace = 0x7b
const closeBrace = 0x7d
/** Bytes below it are control characters, such as line breaks: JSON escapes them, and our encoders write none. */
const space = 0x20

/** Returns the index of the quote that ends the text at `at`; -1 if none does, or it holds a control character. */
function endOfText(bytes: Buffer, at: number, end: number): number {
  for (let index = at + 1; index < end; index += 1) {
    const byte = bytes[index] ?? 0
    if (byte === quote) return index
    if (byte < space) return -1
    if (byte === backslash) {
      index += 1
      if ((bytes[index] ?? 0) < space) return -1
    }
  }
  return -1
}

/**
 * Whether these bytes can be one line of JSONEachRow without being parsed: one object from the first byte to the last.
 * ClickHouse reads `{…}{…}` and `{…},{…}` as two rows, so a record that looks like one object only by its ends could
 * forge another row. ClickHouse itself says whether the fields are right.
 */
export function isOneObject(bytes: Buffer, start: number, end: number): boolean {
  if (end - start < 3 || bytes[start] !== openBrace) return false
  let depth = 0
  for (let at = start; at < end; at += 1) {
    const byte = bytes[at] ?? 0
    if (byte === quote) {
      at = endOfText(bytes, at, end)
      if (at < 0) return false
    } else if (byte === openBrace) depth += 1
    else if (byte === closeBrace) {
      depth -= 1
      if (depth === 0) return at === end - 1
    } else if (byte < space) return false
  }
  return false
}
