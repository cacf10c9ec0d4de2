/**
 * Longest text that may become part of a Redis key, in UTF-16 units. Subjects, names and addresses are shorter at their
 * borders; what comes longer is a bug there, and a key of megabytes must not follow from it.
 */
export const keyPartLengthMax = 1_024

const plain = /^[A-Za-z0-9_-]*$/
const leftByUri = /[!'()*.~]/g

/**
 * The one encoding of text inside Redis keys: percent-encodes all but `[A-Za-z0-9_-]`, so that `:`, `{` and `}` are
 * only ever the key's own, and equal keys mean equal texts. Lone surrogates count as U+FFFD.
 */
export function encodeKeyPart(text: string): string {
  if (text.length > keyPartLengthMax) throw new RangeError(`a key part of ${text.length} characters is over the bound`)
  if (plain.test(text)) return text
  return encodeURIComponent(text.toWellFormed()).replace(
    leftByUri,
    (character) => `%${character.charCodeAt(0).toString(16).toUpperCase()}`,
  )
}
