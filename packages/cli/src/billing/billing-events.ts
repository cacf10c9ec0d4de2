import { type CsvColumns, csvOf } from '@weir/core/csv.ts'
import type { RatedUsage } from '@weir/core/prices/rated-usage.ts'

const hourS = 3_600

/**
 * Returns the event of a row, in the last second of its hour. A correction is in the last second of the export: what it
 * corrects may be invoiced already.
 */
export const eventOf = (
  { id, line, hour, correction, quantity }: RatedUsage,
  { customer, toMs }: { readonly customer: string; readonly toMs: number },
) => {
  const endS = correction ? toMs / 1_000 : Date.parse(hour) / 1_000 + hourS
  return { id, meter: line, customer, atS: endS - 1, quantity }
}

/** Rated usage as billing systems take it: one event of a meter, which is a line, and a customer. */
export type BillingEvent = ReturnType<typeof eventOf>

/** Columns of Stripe's template for meter events in CSV. */
const stripeColumns: CsvColumns = {
  identifier: 'exact',
  timestamp: 'exact',
  event_name: 'exact',
  payload_stripe_customer_id: 'exact',
  payload_value: 'exact',
}

/** Writes events as the CSV file that Stripe imports, with its header line. */
export const stripeCsv = (events: readonly BillingEvent[]): string =>
  csvOf(
    stripeColumns,
    events.map(({ id: identifier, atS, meter: event_name, customer, quantity }) => ({
      identifier,
      timestamp: String(atS),
      event_name,
      payload_stripe_customer_id: customer,
      payload_value: quantity,
    })),
  )

/** Lago accepts at most so many events a request. */
const lagoEventsMax = 100

/** Writes events as bodies of Lago's `POST /api/v1/events/batch`, one a line. */
export function lagoBatches(events: readonly BillingEvent[]): readonly string[] {
  const written = events.map(({ id, meter, customer, atS, quantity }) => {
    const named = { transaction_id: id, external_subscription_id: customer, code: meter, timestamp: atS }
    return JSON.stringify({ ...named, properties: { value: quantity } })
  })
  const batches = Array.from({ length: Math.ceil(written.length / lagoEventsMax) }, (_, at) =>
    written.slice(at * lagoEventsMax, (at + 1) * lagoEventsMax),
  )
  return batches.map((batch) => `{"events":[${batch.join(',')}]}`)
}
