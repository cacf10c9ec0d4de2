import { type Entity, entityKinds, type JsonValue, putEntity } from '@weir/policy/entities.ts'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import {
  type ChangeLineV1,
  changeLinesMax,
  encodeChange,
  encodeChangeDeletion,
  encodeEntityChange,
  encodeReset,
  type PolicyMessage,
  parsePolicyRecord,
} from './policy.v1.ts'

const read = ({ key, value }: PolicyMessage) =>
  parsePolicyRecord(Buffer.from(key), value === null ? null : Buffer.from(value))

/** Without -0, which JSON does not have. */
const json = fc.jsonValue({ noUnicodeString: false }).map((value): JsonValue => JSON.parse(JSON.stringify(value)))

const entity: fc.Arbitrary<Entity> = fc.record({
  kind: fc.constantFrom(...entityKinds),
  name: fc.string({ unit: 'grapheme', minLength: 1, maxLength: 40 }),
  origin: fc.constantFrom('file', 'admin'),
  position: fc.option(fc.integer({ min: 0 }), { nil: undefined }),
  body: fc.dictionary(fc.string({ maxLength: 10 }), json),
  issue: fc.option(fc.record({ at: fc.constant('2026-11-29T02:03:04.000Z'), prefix: fc.string() }), { nil: undefined }),
})

test('an entity is read back as it was written, whatever its name', () => {
  fc.assert(
    fc.property(entity, (one) => {
      expect(read(encodeEntityChange(putEntity(one)))).toEqual({ kind: 'entity', change: putEntity(one) })
      const gone = { kind: one.kind, name: one.name, entity: undefined }
      expect(read(encodeEntityChange(gone))).toEqual({ kind: 'entity', change: gone })
    }),
  )
})

test('what is said of a key for people never keeps the key from being read', () => {
  const value = '{"v":1,"origin":"admin","body":{"subject":"acme"},"issue":{"at":"soon","prefix":"weir_"}}'
  const facts = { kind: 'key', name: 'aa', origin: 'admin', position: undefined, body: { subject: 'acme' } } as const
  expect(read({ key: 'key/aa', value })).toEqual({ kind: 'entity', change: putEntity(facts) })
})

test('a change says when, by whom and what, of a long one the first lines and their number', () => {
  const line: ChangeLineV1 = { what: 'put', kind: 'limit', name: 'minute' }
  const at = { atMs: Date.UTC(2027, 0, 31), by: 'ci' }
  expect(read(encodeChange('id', { ...at, summary: [line] }))).toEqual({
    kind: 'change',
    id: 'id',
    change: { v: 1, at: '2027-01-31T00:00:00.000Z', by: 'ci', summary: [line], total: 1 },
  })
  const after = { offset: '41', id: 'before' }
  expect(read(encodeChange('id', { ...at, summary: [], after }))).toMatchObject({ change: { after } })
  const wrong = {
    key: 'change/id',
    value: JSON.stringify({ v: 1, at: '2026-11-21', by: '', summary: [], after: { offset: 'x' } }),
  }
  expect(read(wrong)).toMatchObject({ kind: 'unreadable' })
  const long = read(encodeChange('id', { ...at, summary: Array.from({ length: 5_000 }, () => line) }))
  expect(long.kind === 'change' && [long.change.summary.length, long.change.total]).toEqual([changeLinesMax, 5_000])
})

test('a reset counts once; its tombstone and a deleted audit record mean nothing', () => {
  const [reset, tombstone] = encodeReset('acme/eu')
  expect(read(reset)).toEqual({ kind: 'reset', subject: 'acme/eu' })
  expect(read(tombstone)).toEqual({ kind: 'nothing' })
  expect(read(encodeChangeDeletion('id'))).toEqual({ kind: 'nothing' })
})

test.each([
  ['', '{"v":1}', 'the key is not of the form kind/name'],
  ['limit', '{"v":1}', 'the key is not of the form kind/name'],
  ['limit/', '{"v":1}', 'the key is not of the form kind/name'],
  ['limits/a', '{"v":1}', 'there is no kind "limits"'],
  ['limit/a', '{', 'the value is not JSON'],
  ['limit/a', '[]', 'the value is not of version 1'],
  ['limit/a', '{"v":2}', 'the value is not of version 1'],
  ['limit/a', '{"v":1,"origin":"me","body":{}}', 'field origin is missing or wrong'],
  ['limit/a', '{"v":1,"origin":"file","body":[]}', 'field body is missing or wrong'],
  ['limit/a', '{"v":1,"origin":"file","body":{},"position":"1"}', 'field position is wrong'],
  ['change/1', '{"v":1,"at":"now","by":"me","summary":[]}', 'field at is wrong'],
  ['change/1', '{"v":1,"at":"2027-01-31T00:00:00Z","summary":[]}', 'field by is wrong'],
  ['change/1', '{"v":1,"at":"2027-01-31T00:00:00Z","by":"me","summary":[{"what":"x"}]}', 'field summary is wrong'],
])('the record %j: %j is unreadable', (key, value, reason) => {
  expect(read({ key, value })).toEqual({ kind: 'unreadable', reason })
})

test('whatever bytes the topic has, reading them never throws', () => {
  fc.assert(
    fc.property(fc.uint8Array(), fc.uint8Array(), (key, value) => {
      expect(['entity', 'change', 'reset', 'nothing', 'unreadable']).toContain(
        parsePolicyRecord(Buffer.from(key), Buffer.from(value)).kind,
      )
    }),
  )
  expect(parsePolicyRecord(null, null).kind).toBe('unreadable')
})
