import { uuidv5 } from '@weir/core/ids.ts'
import type { Invoice } from '@weir/core/prices/invoice.ts'
import { type CsvColumns, csvOf } from '@weir/runtime/csv.ts'

/** What a line of an invoice counted, as billing systems take usage: one event of a meter and a customer. */
export interface BillingEvent {
  /** Follows from invoice and line: sent twice, it is one event to the system. */
  readonly id: string
  /** Name of the line. */
  readonly meter: string
  readonly customer: string
  /** Seconds since the epoch: the last second of the period, so that it falls into no other. */
  readonly atS: number
  /** A whole number, of any length. */
  readonly quantity: string
}

/** Returns an event for each line of an invoice that counted anything, included units too. */
export const eventsOf = (
  { id, period, quote }: Pick<Invoice, 'id' | 'period' | 'quote'>,
  customer: string,
): readonly BillingEvent[] =>
  quote.lines
    .filter(({ quantity }) => BigInt(quantity) > 0n)
    .map(({ name, quantity }) => {
      const atS = Math.ceil(Date.parse(period.to) / 1_000) - 1
      return { id: uuidv5(id, name), meter: name, customer, atS, quantity }
    })

/** Columns of Stripe's template for meter events in CSV. */
const stripeColumns: CsvColumns = {
  ...{ identifier: 'exact', timestamp: 'exact', event_name: 'exact' },
  ...{ payload_stripe_customer_id: 'exact', payload_value: 'exact' },
}

/** Writes events as the CSV file that Stripe imports, with its header line. */
export const stripeCsv = (events: readonly BillingEvent[]): string =>
  csvOf(
    stripeColumns,
    events.map(({ id: identifier, atS, meter: event_name, customer, quantity }) => ({
      ...{ identifier, timestamp: String(atS), event_name },
      ...{ payload_stripe_customer_id: customer, payload_value: quantity },
    })),
  )

/** Events of a request: Lago takes no more. */
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
