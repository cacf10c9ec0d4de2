import type { Invoice } from '@weir/core/prices/invoice.ts'
import { describe, expect, it } from 'vitest'
import { type BillingEvent, eventsOf, lagoBatches, stripeCsv } from './billing-events.ts'

const line = {
  measure: 'units',
  mode: 'graduated',
  included: '0',
  billable: '0',
  tiers: [],
  exact: '0',
  amount: '0',
} as const
const period = { name: '2026-11', from: '', to: '2026-11-30T18:15:00.000Z', time_zone: 'Asia/Kathmandu', anchor: '1' }
const invoice: Pick<Invoice, 'id' | 'period' | 'quote'> = {
  ...{ id: 'cc6af468-4ee5-5146-a0d2-b7d0f0f5a6c1', period },
  quote: {
    ...{ prices: 'api', currency: 'EUR', flat: '9.00', minimum: '0.00', minimum_added: '0.00', total: '9.00' },
    unpriced: { units: '0', decisions: '0' },
    lines: [
      { ...line, name: 'search', quantity: '9007199254740993' },
      { ...line, name: 'idle', quantity: '0' },
      { ...line, name: 'corrected', quantity: '-6' },
      { ...line, name: 'other', quantity: '7' },
    ],
  },
}
const events = eventsOf(invoice, 'cus_1,2')

describe('what an invoice counts, as billing systems take it', () => {
  it('is an event for each line that counted anything, in the last second of the month, under an id that stays', () => {
    expect(events.map(({ meter, quantity }) => [meter, quantity])).toEqual([
      ['search', '9007199254740993'],
      ['other', '7'],
    ])
    expect(new Set(events.map(({ atS }) => new Date(atS * 1_000).toISOString()))).toEqual(
      new Set(['2026-11-30T18:14:59.000Z']),
    )
    expect(eventsOf(invoice, 'cus_1,2')).toEqual(events)
    expect(new Set(events.map(({ id }) => id)).size).toBe(2)
  })

  it('is CSV for Stripe, with the columns of its meter events', () => {
    const [search, other] = events
    expect(stripeCsv(events)).toBe(
      [
        'identifier,timestamp,event_name,payload_stripe_customer_id,payload_value',
        `${search?.id},1796062499,search,"cus_1,2",9007199254740993`,
        `${other?.id},1796062499,other,"cus_1,2",7`,
        '',
      ].join('\r\n'),
    )
  })

  it('is at most a hundred events a request for Lago', () => {
    const many = Array.from({ length: 201 }, (_, at): BillingEvent => {
      return { id: `id-${at}`, meter: 'search', customer: 'sub_1', atS: 1_796_062_499, quantity: '7' }
    })
    const bodies = lagoBatches(many).map((text) => JSON.parse(text).events)
    expect(bodies.map(({ length }) => length)).toEqual([100, 100, 1])
    expect(bodies[2]).toEqual([
      {
        ...{ transaction_id: 'id-200', external_subscription_id: 'sub_1', code: 'search', timestamp: 1_796_062_499 },
        properties: { value: '7' },
      },
    ])
    expect(lagoBatches([])).toEqual([])
  })
})
