import { topics } from '@weir/contracts/topics.ts'
import { expect, test } from 'vitest'
import { planReplay } from './dlq.ts'

const topicId = '0b0b0b0b-0000-4000-8000-000000000001'
const record = {
  v: 1,
  id: '0198c1d2-0000-7000-8000-000000000001',
  ts: '2026-11-20 10:00:00.000',
  subject: 'acme',
  key_id: 'k',
  plan: 'free',
  route: 'GET /',
  method: 'GET',
  cost: 3,
  count: 1,
  outcome: 'allow',
  reason: 'ok',
  mode: 'enforce',
  charged: 'yes',
  denied_by: '',
  limits: [],
  journal: 'j',
  seq: 17,
}
const letter = (value: object | string | null, topic: string = topics.decisions, offset = 5) => ({
  topic,
  partition: 2,
  offset,
  reason: '',
  value: value === null ? null : Buffer.from(typeof value === 'string' ? value : JSON.stringify(value)),
})

function replayed(...args: Parameters<typeof planReplay>) {
  const replay = planReplay(...args)
  return { ...replay, fields: JSON.parse(replay.value) }
}

test('Every replay of one dead letter is the same record, and replays of two dead letters differ', () => {
  const first = replayed(letter(record), topicId, undefined)
  expect(replayed(letter(record), topicId, undefined)).toEqual(first)
  expect(first.fields).toEqual({ ...record, id: first.fields.id, journal: first.journal, seq: 0 })
  expect(first.value.endsWith(`,"journal":"${first.journal}","seq":0}`)).toBe(true)
  for (const other of [
    replayed(letter(record, topics.decisions, 6), topicId, undefined),
    replayed(letter(record), topicId.replace('1', '2'), undefined),
  ]) {
    expect([other.fields.id === first.fields.id, other.journal === first.journal]).toEqual([false, false])
  }
})

test('A corrected text replaces what could not be read, under the same id', () => {
  const corrected = JSON.stringify(record)
  expect(replayed(letter('{"v":1,'), topicId, corrected)).toEqual(replayed(letter(record), topicId, undefined))
})

test('an outcome keeps the id of its decision', () => {
  const { fields } = replayed(letter({ id: record.id, subject: 'acme' }, topics.outcomes), topicId, undefined)
  expect(fields).toMatchObject({ id: record.id, seq: 0 })
})

test.each([
  ['is no JSON', '{"v":1,', 'it is no JSON object'],
  ['is no object', '[1]', 'it is no JSON object'],
  ['had no value', null, 'it is no JSON object'],
  ['lacks a field', { ...record, outcome: 'maybe' }, 'field outcome is missing or wrong'],
])('a letter that %s is refused with the reason', (_, value, why) => {
  expect(() => planReplay(letter(value), topicId, undefined)).toThrow(`It is still no record: ${why}.`)
})
