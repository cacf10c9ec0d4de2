import { readFileSync } from 'node:fs'
import { reasons } from '@weir/core/limits/decision.ts'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { type DecisionInput, encodeDecisionOpen, parseDecision } from './decision.v1.ts'
import { decisionColumns, requiredColumns } from './decision-columns.ts'

const anyText = fc.string({ unit: 'binary', maxLength: 60 })
/** Halves of surrogate pairs included: they come from nowhere but a bug, and must still not break the line. */
const wildText = fc.array(fc.integer({ min: 0, max: 0xffff })).map((units) => String.fromCharCode(...units))
const text = fc.oneof(anyText, wildText)
const count = fc.maxSafeNat()
/** An object would have whole numbers in another order, and this one nowhere. */
const key = text.filter((one) => !/^\d/.test(one) && one !== '__proto__')

const input: fc.Arbitrary<DecisionInput> = fc.record({
  id: fc.uuid({ version: 7 }),
  tsMs: fc.integer({ min: 0, max: 4_102_444_800_000 }),
  subject: text,
  keyId: text,
  plan: text,
  route: text,
  method: text,
  cost: count,
  count,
  outcome: fc.constantFrom('allow', 'deny'),
  reason: fc.constantFrom(...reasons),
  mode: fc.constantFrom('enforce', 'shadow'),
  charged: fc.constantFrom('yes', 'no', 'unknown'),
  deniedBy: text,
  shadowedBy: text,
  limits: fc.array(
    fc.record(
      { name: text, size: count, used: count, remaining: count, resetMs: count, by: fc.dictionary(key, text) },
      { requiredKeys: ['name', 'size', 'used', 'remaining', 'resetMs'] },
    ),
    { maxLength: 16 },
  ),
  policy: fc.option(fc.integer({ min: -1 }), { nil: undefined }),
  retryMs: fc.option(fc.integer({ min: -1 }), { nil: undefined }),
  ip: fc.option(text, { nil: undefined }),
  meter: fc.option(text, { nil: undefined }),
  dims: fc.option(fc.dictionary(key, text, { maxKeys: 8 }), { nil: undefined }),
  held: fc.option(fc.dictionary(key, count), { nil: undefined }),
  units: fc.option(fc.dictionary(key, fc.maxSafeInteger()), { nil: undefined }),
  basis: fc.constantFrom(undefined, '', 'reported', 'counted', 'bound'),
  correction: fc.option(fc.record({ corrects: fc.uuid({ version: 7 }), adjustment: fc.maxSafeInteger() }), {
    nil: undefined,
  }),
})

const closed = (line: string) => `${line},"journal":"j","seq":7}`

/** The record by the plain means: an object and JSON.stringify. */
function byStringify(d: DecisionInput): string {
  return JSON.stringify({
    v: 1,
    id: d.id,
    ts: new Date(d.tsMs).toISOString().replace('T', ' ').replace('Z', ''),
    subject: d.subject,
    key_id: d.keyId,
    plan: d.plan,
    route: d.route,
    method: d.method,
    cost: d.cost,
    count: d.count,
    outcome: d.outcome,
    reason: d.reason,
    mode: d.mode,
    charged: d.charged,
    denied_by: d.deniedBy,
    ...(d.shadowedBy ? { shadowed_by: d.shadowedBy } : {}),
    limits: d.limits.map(({ resetMs, by = {}, ...rest }) => ({
      ...rest,
      reset_ms: resetMs,
      ...(Object.keys(by).length === 0 ? {} : { by }),
    })),
    ...(d.policy === undefined || d.policy < 0 ? {} : { policy: d.policy }),
    ...(d.retryMs === undefined ? {} : { retry_ms: d.retryMs }),
    ...(d.ip ? { ip: d.ip } : {}),
    ...(d.meter ? { meter: d.meter } : {}),
    ...(Object.keys(d.dims ?? {}).length === 0 ? {} : { dims: d.dims }),
    ...(d.held === undefined ? {} : { held: d.held }),
    ...(d.units === undefined ? {} : { units: d.units }),
    ...(d.basis === undefined ? {} : { basis: d.basis }),
    ...d.correction,
    journal: 'j',
    seq: 7,
  })
}

test('every decision is encoded, byte for byte, as JSON.stringify would', () => {
  fc.assert(
    fc.property(input, (d) => {
      expect(closed(encodeDecisionOpen(d))).toBe(byStringify(d))
    }),
  )
})

test('what was encoded is read back whole', () => {
  fc.assert(
    fc.property(input, (d) => {
      const parsed = parseDecision(Buffer.from(closed(encodeDecisionOpen(d))))
      expect(parsed).toEqual({ kind: 'decision', decision: JSON.parse(byStringify(d)), tsMs: d.tsMs })
    }),
  )
})

test('no field can end the line or forge another record', () => {
  fc.assert(
    fc.property(input, (d) => {
      expect(encodeDecisionOpen(d)).not.toMatch(/[\n\r]/)
    }),
  )
})

test('a correction has both of its fields, or it is unreadable', () => {
  fc.assert(
    fc.property(input, fc.constantFrom('corrects', 'adjustment'), (d, missing) => {
      const whole = JSON.parse(byStringify({ ...d, correction: { corrects: d.id, adjustment: -3 } }))
      const parsed = parseDecision(Buffer.from(JSON.stringify({ ...whole, [missing]: undefined })))
      expect(parsed).toEqual({ kind: 'unreadable', reason: `field ${missing} is missing or wrong` })
    }),
  )
})

test.each([
  ['not JSON', '{'],
  ['field the whole value', '[]'],
  ['field v', '{"v":2}'],
  ['field id', '{"v":1}'],
])('a value that is no decision is unreadable and says why: %s', (reason, value) => {
  const parsed = parseDecision(Buffer.from(value))
  expect(parsed).toMatchObject({ kind: 'unreadable', reason: expect.stringContaining(reason) })
})

test('a record of an older process, without the limit in shadow, is read as well; one whose name is no text is not', () => {
  fc.assert(
    fc.property(input, (d) => {
      const record = JSON.parse(byStringify({ ...d, shadowedBy: '' }))
      expect(parseDecision(Buffer.from(JSON.stringify(record))).kind).toBe('decision')
      expect(parseDecision(Buffer.from(JSON.stringify({ ...record, shadowed_by: 1 }))).kind).toBe('unreadable')
    }),
  )
})

/** A denial as the version before `by`, `policy`, `retry_ms` and `ip` wrote it, and as this one does. */
const recorded = {
  old: `{"v":1,"id":"01a1fdfa-6d10-7540-81b4-576e9d55a36f","ts":"2026-11-21 12:00:10.500","subject":"acme","key_id":"k","plan":"free","route":"*","method":"GET","cost":1,"count":1,"outcome":"deny","reason":"limit","mode":"enforce","charged":"no","denied_by":"otp","limits":[{"name":"otp","size":5,"used":5,"remaining":0,"reset_ms":900}],"journal":"01a1fdfa-6d10-4540-81b4-576e9d55a36f","seq":7}`,
  new: `{"v":1,"id":"01a1fdfa-6d10-7540-81b4-576e9d55a36f","ts":"2026-11-21 12:00:10.500","subject":"acme","key_id":"k","plan":"free","route":"*","method":"GET","cost":1,"count":1,"outcome":"deny","reason":"limit","mode":"enforce","charged":"no","denied_by":"otp","limits":[{"name":"otp","size":5,"used":5,"remaining":0,"reset_ms":900,"by":{"ip":"192.0.2.1"}}],"policy":412,"retry_ms":120000,"ip":"192.0.2.1","journal":"01a1fdfa-6d10-4540-81b4-576e9d55a36f","seq":7}`,
}

test('recorded lines of the version before, and of this one, are read whole', () => {
  for (const line of Object.values(recorded)) {
    expect(parseDecision(Buffer.from(line))).toMatchObject({ kind: 'decision', decision: JSON.parse(line) })
  }
})

test('docs/schemas/weir.decisions.v1.json is what the columns say; with -u this test writes it', async () => {
  const schema = {
    $schema: 'https://json-schema.org/draft/2020-12/schema',
    title: 'A decision of Weir',
    description:
      'A record on weir.decisions.v1. Fields that are not required are absent where there is nothing to say, and in records of older processes. Fields may be added; none is taken away.',
    type: 'object',
    required: requiredColumns,
    properties: Object.fromEntries(Object.entries(decisionColumns).map(([name, column]) => [name, column.schema])),
  }
  const text = `${JSON.stringify(schema, null, 2)}\n`
  await expect(text).toMatchFileSnapshot('../../../docs/schemas/weir.decisions.v1.json')
  expect(requiredColumns).toEqual(Object.keys(JSON.parse(recorded.old)))
})

test('a record has at most 8 labels, each of them a text', () => {
  const labels = (count: number, value: unknown = 'v') =>
    `"dims":${JSON.stringify(Object.fromEntries(Array.from({ length: count }, (_, at) => [`d${at}`, value])))},"journal"`
  const read = (dims: string) => parseDecision(Buffer.from(recorded.new.replace('"journal"', dims))).kind
  expect(read(labels(8))).toBe('decision')
  expect([labels(9), labels(1, 7), labels(1, null)].map(read)).toEqual(Array(3).fill('unreadable'))
})

test.each([
  ['"by":{"ip":"192.0.2.1"}', '"by":{"ip":7}', 'limits'],
  ['"by":{"ip":"192.0.2.1"}', '"by":[]', 'limits'],
  ['"policy":412', '"policy":"412"', 'policy'],
  ['"retry_ms":120000', '"retry_ms":-2', 'retry_ms'],
  ['"ip":"192.0.2.1","journal"', '"ip":null,"journal"', 'ip'],
])('a record with %s as %s is unreadable', (right, wrong, field) => {
  const parsed = parseDecision(Buffer.from(recorded.new.replace(right, wrong)))
  expect(parsed).toEqual({ kind: 'unreadable', reason: `field ${field} is missing or wrong` })
})
