/**
 * The value of the first cookie with this name, which Express, Go and PHP take too; undefined without one. Quotes and
 * escapes are undone, because many readers do so: otherwise one session could be written in many ways.
 */
export function cookieValue(header: string, name: string): string | undefined {
  for (const pair of header.split(';')) {
    const equals = pair.indexOf('=')
    if (equals === -1 || pair.slice(0, equals).trim() !== name) continue
    const value = pair.slice(equals + 1).trim()
    return unescaped(value.length > 1 && value.startsWith('"') && value.endsWith('"') ? value.slice(1, -1) : value)
  }
  return undefined
}

function unescaped(value: string): string {
  if (!value.includes('%')) return value
  try {
    return decodeURIComponent(value)
  } catch {
    return value // it is no escaped text, and its readers take it as it is
  }
}
