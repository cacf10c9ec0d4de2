import type { Place, PolicyReader } from './policy-reader.ts'

/** They frame the message, belong to one hop, or say where it came from: none is a caller's credential. */
const framing = new Set([
  ...['connection', 'content-encoding', 'content-length', 'content-type', 'expect', 'host', 'keep-alive', 'te'],
  ...['proxy-authenticate', 'proxy-authorization', 'proxy-connection', 'trailer', 'transfer-encoding', 'upgrade'],
  ...['forwarded', 'via', 'x-forwarded-for', 'x-forwarded-host', 'x-forwarded-proto', 'x-real-ip'],
])

/** The name of a header, in lower case, that may say who calls. */
export function readHeaderName(reader: PolicyReader, place: Place): string | undefined {
  const name = reader.text(place, 'the name of a header', (text) =>
    /^[\w!#$%&'*+.^`|~-]{1,64}$/.test(text) ? text.toLowerCase() : undefined,
  )
  if (name === undefined) return undefined
  if (name === 'cookie' || name === 'set-cookie') {
    return reader.problem(
      place,
      'browsers send cookies unasked, so that any page could call in the name of its visitors',
    )
  }
  if (framing.has(name)) return reader.problem(place, `the header ${name} is of the connection, not of the caller`)
  return name
}
