import { encodeDecisionOpen } from '@weir/contracts/decision.v1.ts'
import { storedColumns } from '@weir/contracts/decision-columns.ts'
import { encodeMark } from '@weir/contracts/journal.v1.ts'
import { decisionInput } from '@weir/contracts/testing/decision-input.ts'
import { describe, expect, it } from 'vitest'
import { buildBlock } from './build-block.ts'
import type { BlockRecord } from './ports.ts'
import { decisions } from './record-kinds.ts'
import { SequenceTracker } from './sequence-tracker.ts'

const journal = '7b1f4b8a-0000-4000-8000-000000000001'
const topicId = '00000000-0000-4000-8000-00000000000a'

const decision = (seq: number, tsMs = Date.parse('2026-05-02'), subject = 'acme') =>
  `${encodeDecisionOpen(decisionInput({ tsMs, subject, route: 'GET /' }))},"journal":"${journal}","seq":${seq}}`

/** From offset 100 on, all in one fetch. */
function recordsOf(values: readonly (string | null)[]): BlockRecord[] {
  const bytes = Buffer.from(values.join(''))
  let at = 0
  return values.map((value, index) => {
    const start = at
    at += Buffer.byteLength(value ?? '')
    const place = { position: 100 + index, timestampMs: Date.parse('2026-05-02'), bytes }
    if (value === null) return { ...place, valueStart: -1, valueEnd: start, value }
    return { ...place, valueStart: start, valueEnd: at, value: bytes.subarray(start, at) }
  })
}

const build = (
  values: readonly (string | null)[],
  encoder: 'fast' | 'slow' = 'fast',
  sequences = new SequenceTracker(new Map()),
) => buildBlock(recordsOf(values), { kind: decisions, encoder, topicId, partition: 3, sequences, insertedUpTo: 99 })

const linesOf = (block: ReturnType<typeof build>) =>
  block.months.flatMap(({ lines }) => lines.toString().trimEnd().split('\n'))

describe('buildBlock', () => {
  it('splices the place in Kafka into each record, and leaves its bytes as they are', () => {
    const block = build([decision(0), decision(1)])
    const place = (offset: number) => `,"topic_id":"${topicId}","partition":3,"offset":${offset}}`
    expect(linesOf(block)).toEqual([decision(0).slice(0, -1) + place(100), decision(1).slice(0, -1) + place(101)])
    expect(block).toMatchObject({ rows: 2, duplicates: 0, deadLetters: [], insertedUpTo: 101 })
  })

  it('gives the rows of replicas their time, however each record is read', () => {
    const receivedAtMs = Date.parse('2026-05-02T10:00:00.123Z')
    const of = { kind: decisions, topicId, partition: 3, insertedUpTo: 99, receivedAtMs }
    for (const encoder of ['fast', 'slow'] as const) {
      const sequences = new SequenceTracker(new Map())
      const [line = ''] = linesOf(buildBlock(recordsOf([decision(0)]), { ...of, encoder, sequences }))
      expect(JSON.parse(line)).toMatchObject({ received_at: '2026-05-02 10:00:00.123', topic_id: topicId, offset: 100 })
    }
  })

  it('has the same rows when its records are read in full, and when it is built again', () => {
    const values = [
      decision(0),
      decision(1, Date.parse('2026-04-30')),
      encodeMark(0, journal, 2, false),
      'bad',
      decision(2),
    ]
    const parse = (block: ReturnType<typeof build>) => linesOf(block).map((line) => JSON.parse(line))
    expect(parse(build(values, 'slow'))).toEqual(parse(build(values)))
    expect(build(values).months).toEqual(build(values).months)
  })

  it('has every stored column, also of a record that is read in full', () => {
    const correction = { corrects: journal, adjustment: -2, countAdjustment: -1 }
    const of = decisionInput({
      count: 0,
      cost: 0,
      policy: 7,
      retryMs: 30,
      ip: '192.0.2.1',
      shadowedBy: 'minute',
      meter: 'chat',
      dims: { model: 'small' },
      held: { tokens: 4_096 },
      units: { tokens: 812 },
      basis: 'reported',
      parents: ['team-a', 'acme'],
      correction,
    })
    const value = `${encodeDecisionOpen({ ...of, tsMs: Date.parse('2026-05-02') })},"journal":"${journal}","seq":0}`
    const rows = (['slow', 'fast'] as const).map((encoder) => JSON.parse(linesOf(build([value], encoder))[0] ?? ''))
    expect(rows[0]).toEqual(rows[1])
    expect(Object.keys(rows[0])).toEqual(expect.arrayContaining([...storedColumns]))
  })

  it('splits its rows by month, the older month first', () => {
    const block = build([decision(0), decision(1, Date.parse('2026-04-30')), decision(2)])
    expect(block.months.map(({ month, rows }) => [month, rows])).toEqual([
      ['2026-04', 1],
      ['2026-05', 2],
    ])
  })

  it('a record in another form than our encoders write is read in full, and is a row all the same', () => {
    const { journal: name, seq, ...rest } = JSON.parse(decision(0))
    const [line = ''] = linesOf(build([JSON.stringify({ seq, journal: name, ...rest, more: 'than we know' })]))
    expect(JSON.parse(line)).toMatchObject({ seq: 0, subject: 'acme', offset: 100 })
    expect(line).not.toContain('more')
  })

  it('keeps a record that cannot be read as a dead letter with a reason, and all others as rows', () => {
    const block = build([decision(0), null, `${decision(7)}${decision(8)}`, decision(1)])
    expect(block.rows).toBe(2)
    expect(block.deadLetters.map(({ message, reason }) => [message.position, reason])).toEqual([
      [101, 'no value'],
      [102, 'not JSON'],
    ])
    expect(block.bookkeeping.gaps).toMatchObject([{ cause: 'dead_letter' }, { cause: 'dead_letter' }])
  })

  it('the gap of a record that cannot be read has its number, if that is the very next, and nothing is lost', () => {
    const unreadable = decision(1).replace('"cost":1', '"cost":"much"')
    const { missing, bookkeeping } = build([decision(0), unreadable, decision(2)], 'slow')
    expect(missing).toEqual([])
    expect(bookkeeping.gaps).toMatchObject([{ cause: 'dead_letter', journal, from_seq: 1, to_seq: 1, count: 1 }])
  })

  it('a watermark of the future is refused, so that usage is not reported complete before it is', () => {
    expect(build([encodeMark(Date.parse('2999-01-01'), journal, 1, false)]).deadLetters).toHaveLength(1)
  })

  it('drops duplicates, also of records that came in another form', () => {
    const block = build([decision(0), decision(0), JSON.stringify({ ...JSON.parse(decision(0)), more: 1 })])
    expect(block).toMatchObject({ rows: 1, duplicates: 2 })
  })
})
