import { readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { type AlertV1, alertFields, encodeAlert, parseAlert } from './alert.v1.ts'

const alert: AlertV1 = {
  id: '2ed6657d-e927-568b-95e1-2665a8aea6a2',
  type: 'weir.quota.reached',
  subject: 'acme',
  time: '2026-01-02T03:04:05.006Z',
  data: {
    limit: 'day',
    size: 5_000,
    used: 4_000,
    percent: 80,
    period_start: '2026-01-02T00:00:00.000Z',
    period_end: '2026-01-03T00:00:00.000Z',
    decision_id: '019b7b5e-0000-7000-8000-000000000000',
  },
}

test('an alert is a CloudEvent in binary mode: attributes in headers, data in the value, subject as key', () => {
  expect(encodeAlert(alert)).toEqual({
    key: 'acme',
    value: JSON.stringify(alert.data),
    headers: {
      ce_specversion: '1.0',
      ce_id: alert.id,
      ce_source: '/weir',
      ce_type: 'weir.quota.reached',
      ce_subject: 'acme',
      ce_time: '2026-01-02T03:04:05.006Z',
      'content-type': 'application/json',
    },
  })
})

test('an alert is read back as it was raised', () => {
  const { value, headers } = encodeAlert(alert)
  expect(parseAlert(Buffer.from(value), headers)).toEqual({ kind: 'alert', alert })
})

test('recorded alerts of the version before, and of this one with what the limit counted by, are read whole', () => {
  const of = (more: object) =>
    JSON.stringify({
      limit: 'otp',
      size: 5,
      until: '2026-11-21T12:02:00.000Z',
      decision_id: alert.data.decision_id,
      ...more,
    })
  const { headers } = encodeAlert(alert)
  for (const text of [of({}), of({ by: { ip: '192.0.2.1' } }), of({ more: 9_900 })]) {
    const parsed = parseAlert(Buffer.from(text), { ...headers, ce_type: 'weir.limit.blocked' })
    expect(parsed).toMatchObject({ kind: 'alert', alert: { data: JSON.parse(text) } })
  }
})

test('what is no alert of Weir is unreadable, not an error', () => {
  const { value, headers } = encodeAlert(alert)
  expect(parseAlert(Buffer.from(value), {}).kind).toBe('unreadable')
  expect(parseAlert(Buffer.from(value), { ...headers, ce_type: 'other' }).kind).toBe('unreadable')
  expect(parseAlert(null, headers).kind).toBe('unreadable')
  expect(parseAlert(Buffer.from('{"limit":1}'), headers).kind).toBe('unreadable')
})

test.each([
  ['an id that is no UUID', { ce_id: 'a:b' }, {}],
  ['a time that is none', { ce_time: 'x' }, {}],
  ['a time of another age', { ce_time: '9999-01-01T00:00:00Z' }, {}],
  ['a broken size', {}, { size: 1.5 }],
  ['a size below zero', {}, { size: -1 }],
  ['a period that is none', {}, { period_start: 'yesterday' }],
  ['a decision that is none', {}, { decision_id: 'd' }],
  ['an address that is no text', {}, { by: { ip: 1 } }],
  ['a broken number of more', {}, { more: 1.5 }],
])('an alert with %s is unreadable: it would stop the consumer that stores it', (_, changed, data) => {
  const { headers } = encodeAlert(alert)
  const value = Buffer.from(JSON.stringify({ ...alert.data, ...data }))
  expect(parseAlert(value, { ...headers, ...changed }).kind).toBe('unreadable')
})

test('the published schema has every type with its fields, and no other', () => {
  const file = new URL('../../../docs/schemas/weir.alerts.v1.json', import.meta.url)
  const schema: { $defs: Record<string, { required: string[]; properties: Record<string, object> }> } = JSON.parse(
    readFileSync(file, 'utf8'),
  )
  const kinds = {
    text: { type: 'string' },
    time: { type: 'string', format: 'date-time' },
    uuid: { type: 'string', format: 'uuid' },
    count: { type: 'integer', minimum: 0 },
    number: { type: 'number' },
  }
  const published = Object.entries(schema.$defs).map(([type, { required, properties }]) => {
    const optional = Object.keys(properties).filter((name) => !required.includes(name))
    const known = {
      'weir.alerts.digest': ['alerts'],
      'weir.quota.reached': ['by', 'unit', 'currency'],
      'weir.quota.resolved': ['by', 'unit', 'currency'],
      'weir.quota.forecast': ['by', 'unit', 'currency'],
      'weir.limit.blocked': ['by', 'unit', 'currency', 'more'],
    }
    expect(optional).toEqual(Object.entries(known).find(([name]) => name === type)?.[1] ?? [])
    const needed = Object.entries(properties).filter(([name]) => required.includes(name))
    const forms = needed.map(([name, form]) => [name, { ...form, description: '' }])
    return [type, Object.fromEntries(forms)]
  })
  const wanted = Object.entries(alertFields).map(([type, fields]) => {
    const forms = Object.entries(fields).map(([name, kind]) => [name, { ...kinds[kind], description: '' }])
    return [type, Object.fromEntries(forms)]
  })
  expect(Object.fromEntries(published)).toEqual(Object.fromEntries(wanted))
})
