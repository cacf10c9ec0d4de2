declare global {
  interface JSON {
    /** ES2025, and in Node since 21; TypeScript's library does not have it yet. */
    rawJSON(text: string): object
  }
}

/**
 * Returns the JSON of a value in which the text of every key of `names` stands as a number, digit by digit: exact
 * however large it is, where a number of JavaScript would be rounded beyond 2^53.
 */
export const jsonWithNumbers = (value: unknown, names: ReadonlySet<string>): string =>
  JSON.stringify(value, (name, part) => (names.has(name) && typeof part === 'string' ? JSON.rawJSON(part) : part))
