/** As long as an HMAC-SHA-256 is, and as RFC 7518 asks for. */
const keyBytesMin = 32

/** The keys in the text of `WEIR_PORTAL_KEY`: none, one, or two with a comma between them. */
export const portalKeysOf = (text: string): readonly string[] => (text === '' ? [] : text.split(','))

/** Says what is wrong with the text of `WEIR_PORTAL_KEY`; undefined for nothing. Empty is no key, and right. */
export function portalKeyProblem(text: string): string | undefined {
  const keys = portalKeysOf(text)
  if (keys.length <= 2 && keys.every((key) => Buffer.byteLength(key) >= keyBytesMin)) return undefined
  return `must be a key of at least ${keyBytesMin} characters, or two with a comma between them`
}
