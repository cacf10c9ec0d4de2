import type { RatedUsage } from '@weir/core/prices/rated-usage.ts'
import { describe, expect, it } from 'vitest'
import { type BillingEvent, eventOf, lagoBatches, stripeCsv } from './billing-events.ts'

const row: RatedUsage = {
  id: 'cc6af468-4ee5-5146-a0d2-b7d0f0f5a6c1',
  subject: 'acme',
  hour: '2026-11-20T10:00:00.000Z',
  correction: false,
  prices: 'api',
  line: 'search',
  unit: 'units',
  quantity: '9007199254740993',
}
const of = { customer: 'cus_1,2', toMs: Date.parse('2026-11-21T12:00:00Z') }
const time = ({ atS }: BillingEvent) => new Date(atS * 1_000).toISOString()

describe('rated usage, as billing systems take it', () => {
  it('is an event in the last second of its hour, and of a correction in that of the export', () => {
    const [first, correction] = [eventOf(row, of), eventOf({ ...row, correction: true, quantity: '-7' }, of)]
    expect([time(first), time(correction)]).toEqual(['2026-11-20T10:59:59.000Z', '2026-11-21T11:59:59.000Z'])
    expect(correction).toMatchObject({ id: row.id, meter: 'search', customer: 'cus_1,2', quantity: '-7' })
  })

  it('is CSV for Stripe, with the columns of its meter events', () => {
    expect(stripeCsv([eventOf(row, of)])).toBe(
      [
        'identifier,timestamp,event_name,payload_stripe_customer_id,payload_value',
        `${row.id},1795172399,search,"cus_1,2",9007199254740993`,
        '',
      ].join('\r\n'),
    )
  })

  it('is at most a hundred events a request for Lago', () => {
    const many = Array.from({ length: 201 }, (_, at): BillingEvent => {
      return { id: `id-${at}`, meter: 'search', customer: 'sub_1', atS: 1_796_062_499, quantity: '-7' }
    })
    const bodies = lagoBatches(many).map((text) => JSON.parse(text).events)
    expect(bodies.map(({ length }) => length)).toEqual([100, 100, 1])
    expect(bodies[2]).toEqual([
      {
        transaction_id: 'id-200',
        external_subscription_id: 'sub_1',
        code: 'search',
        timestamp: 1_796_062_499,
        properties: { value: '-7' },
      },
    ])
    expect(lagoBatches([])).toEqual([])
  })
})
