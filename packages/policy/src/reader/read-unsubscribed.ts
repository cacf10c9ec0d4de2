import type { PolicyReader, SourcePosition } from './policy-reader.ts'
import * as t from './value-types.ts'

/** Definitions are read as a whole when one of them changes: so many are read in some 50 ms. */
const subjectsMax = 10_000
/** Addresses that a contact has had over the years. */
const addressesMax = 100

const unsubscribed = t.object('an entry of unsubscribed', {
  email: t.required(
    'Addresses that get no mail, each as the start of its SHA-256, as in the names of deliveries.',
    t.list('a list of hashes', t.matching('12 hex digits in lower case', /^[0-9a-f]{12}$/), {
      min: 1,
      max: addressesMax,
      nameOf: (hash: string) => hash,
      wrongCount: (count) => `must have 1 to ${addressesMax} hashes, but has ${count}`,
    }),
  ),
})

/** The section `unsubscribed`. */
export const unsubscribedEntries = t.entries(unsubscribed.schema, {
  plural: 'entries of unsubscribed',
  one: 'an entry of unsubscribed',
  max: subjectsMax,
  ids: t.subjectIds,
})

/** Which addresses of their contacts get no mail, by subject. */
export const readUnsubscribed = (reader: PolicyReader, at: SourcePosition) =>
  unsubscribedEntries.each(reader, at, (_, field) => unsubscribed.read(reader, field)?.email)
