import { expect, test } from 'vitest'
import { type DeliveryV1, parseDelivery } from './delivery.v1.ts'

const delivery: DeliveryV1 = {
  alert_id: '2ed6657d-e927-568b-95e1-2665a8aea6a2',
  alert_type: 'weir.quota.reached',
  subject: 'acme',
  endpoint: 'ops',
  attempt: 1,
  at: '2026-11-21 12:00:00.000',
  outcome: 'failed',
  status: 500,
  ms: 12,
  error: 'answered 500',
  next_try: '2026-11-21 12:00:05.000',
  answer: 'oops',
}
const parse = (changed: object) => parseDelivery(Buffer.from(JSON.stringify({ ...delivery, ...changed })))

test('a delivery is read back as it was written', () => {
  expect(parse({})).toEqual({ kind: 'delivery', delivery })
  expect(parse({ next_try: null })).toMatchObject({ kind: 'delivery' })
})

test.each([
  [{ alert_id: '2ED6657D-E927-568B-95E1-2665A8AEA6A2' }],
  [{ at: 'now' }],
  [{ at: '2026-13-45 12:00:00.000' }],
  [{ next_try: 'later' }],
  [{ attempt: 65_536 }],
  [{ status: -1 }],
  [{ ms: 1.5 }],
  [{ outcome: 'lost' }],
  [{ answer: null }],
])('%j would stop the consumer that stores it, and is unreadable', (changed) => {
  expect(parse(changed).kind).toBe('unreadable')
})

test('a value that is no JSON, and no value, are unreadable', () => {
  expect([parseDelivery(Buffer.from('?')).kind, parseDelivery(null).kind]).toEqual(['unreadable', 'unreadable'])
})
