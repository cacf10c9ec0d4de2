/** A text without its percent-escapes; undefined where they are broken or no UTF-8. */
export function decodeEscapes(escaped: string): string | undefined {
  try {
    return decodeURIComponent(escaped)
  } catch {
    return undefined
  }
}
