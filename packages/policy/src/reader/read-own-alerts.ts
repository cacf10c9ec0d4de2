import { addresses, addressForm } from './endpoint-keys.ts'
import type { PolicyReader, SourcePosition } from './policy-reader.ts'
import * as t from './value-types.ts'

/** Definitions are read as a whole when one of them changes: so many are read in some 50 ms. */
const subjectsMax = 10_000
/** Addresses of one customer, unconfirmed ones included: each may get one mail a day that it did not ask for. */
export const ownAddressesMax = 5
/** More percentages than this are a chart's business. */
const percentsMax = 5

const pending = t.object('an unconfirmed address', {
  email: t.required('The address.', t.matching('an address such as ops@example.com', addressForm)),
  at: t.required('When the address was added; it expires a day later.', t.time),
  removed: t.withDefault('Whether the customer has taken it back.', t.boolean, false),
})

const ownAlerts = t.object("a customer's own alerts", {
  email: t.optional('Confirmed addresses.', addresses(ownAddressesMax, { nameOf: (address) => address })),
  pending: t.optional(
    'Unconfirmed addresses, whose link has not been opened.',
    t.list('a list of unconfirmed addresses', pending, { max: ownAddressesMax, nameOf: ({ email = '' }) => email }),
  ),
  percents: t.optional(
    'Percentages of calendar limits that raise an alert for this subject.',
    t.list('a list of percentages', t.percent, { max: percentsMax, nameOf: (percent) => percent }),
  ),
})

/** The section `ownAlerts`. */
export const ownAlertsEntries = t.entries(ownAlerts.schema, {
  plural: "entries of customers' own alerts",
  one: "an entry of a customer's own alerts",
  max: subjectsMax,
  ids: t.subjectIds,
})

/** What customers have chosen for their own alerts, by subject. */
export const readOwnAlerts = (reader: PolicyReader, at: SourcePosition) =>
  ownAlertsEntries.each(reader, at, (_, field) => {
    const found = ownAlerts.read(reader, field)
    if (found === undefined) return undefined
    const { email = [], pending: unconfirmed = [], percents = [] } = found
    return {
      email,
      pending: unconfirmed.map((one) => ({ email: one.email, atMs: one.at, isRemoved: one.removed })),
      percents,
    }
  })
