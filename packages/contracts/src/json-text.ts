/** What JSON.stringify would not leave as it is: quotes, backslashes, control characters, halves of surrogate pairs. */
const needsEscape = /[^ !#-[\]-\ud7ff\ue000-\uffff]/

/**
 * A string as JSON. Nearly all that occur need no escaping, and then this is several times as fast as JSON.stringify.
 */
export function jsonText(text: string): string {
  return needsEscape.test(text) ? JSON.stringify(text) : `"${text}"`
}
