import { createHmac, timingSafeEqual } from 'node:crypto'

/** Longer texts are not verified: the longest subject makes some 750 characters. */
const lengthMax = 1_024
/** What is signed begins with one of these: no other text under the same key is a token of its kind. */
const purposes = { unsubscribe: 'weir-unsubscribe ', confirm: 'weir-confirm ' }
/** What a link in a mail is for. */
export type LinkPurpose = keyof typeof purposes

/** Whose link it is: of one address of one subject. */
export interface AddressClaim {
  readonly subject: string
  /** As in the name of its target. */
  readonly addressHash: string
}

const macOf = (payload: string, key: string, purpose: LinkPurpose): Buffer =>
  createHmac('sha256', key).update(`${purposes[purpose]}${payload}`).digest()

/** Returns the token of an address, which has no end: a mail may be read years later. Undefined without a key. */
export function signAddress(
  keys: readonly string[],
  purpose: LinkPurpose,
  { subject, addressHash }: AddressClaim,
): string | undefined {
  const [key] = keys
  if (key === undefined) return undefined
  const payload = Buffer.from(JSON.stringify([subject, addressHash])).toString('base64url')
  return `${payload}.${macOf(payload, key, purpose).toString('base64url')}`
}

/** Returns what a token says that one of the keys has signed; undefined for any other text. */
export function verifyAddress(keys: readonly string[], purpose: LinkPurpose, token: string): AddressClaim | undefined {
  const [payload = '', mac = '', ...more] = token.length > lengthMax ? [] : token.split('.')
  const given = Buffer.from(mac, 'base64url')
  const isSigned = keys.some((key) => {
    const own = macOf(payload, key, purpose)
    return own.length === given.length && timingSafeEqual(own, given)
  })
  if (!isSigned || more.length > 0) return undefined
  const [subject, addressHash] = JSON.parse(Buffer.from(payload, 'base64url').toString('utf8'))
  return { subject, addressHash }
}
