import { encodeGapOpen, encodeMark } from '@weir/contracts/journal.v1.ts'
import { topics } from '@weir/contracts/topics.ts'
import { waitUntil } from '@weir/runtime/wait-until.ts'
import { expect, onTestFinished, test } from 'vitest'
import { forFile } from '../../support/opened.ts'
import { kafkaOptions } from '../../support/servers/kafka-topics.ts'
import { readTopic } from '../../support/servers/read-topic.ts'
import { until } from '../../support/until.ts'
import { newJournal, once, openMeteringStack, settled } from './open-metering.ts'

const stack = await forFile(openMeteringStack())
const metering = await stack.start()

interface GapRow {
  readonly cause: string
  readonly from_seq: number
  readonly to_seq: number
  readonly count: number
}

const gapsOf = (journal: string) =>
  stack.rows<GapRow>(
    `SELECT cause, toUInt32(from_seq) AS from_seq, toUInt32(to_seq) AS to_seq, toUInt32(count) AS count
     FROM weir.gaps FINAL WHERE journal = '${journal}' ORDER BY from_seq`,
  )

test('a record that cannot be read goes whole to the dead letters and forges no row, and every other record counts once', async () => {
  const journal = newJournal()
  const [one = '', two = '', three = ''] = newJournal().take(3)
  const good = journal.take(400)
  const poison = [
    'not json',
    '{',
    '{}',
    '[1]',
    '',
    null,
    `${one}\n${two}`,
    `${one}${two}`,
    `${one},${two}`,
    `{"v":1,"limits":"[","b":1},${three}`,
    one.replace('"cost":2', '"cost":"much"'),
    one.replace('"cost":2', '"cost":-2'),
    one.replace('"outcome":"allow"', '"outcome":"maybe"'),
    one.replace('"count":1', '"count":0'),
    one.replace('"route":"GET /{id}"', '"route":null'),
    one.replace(/"ts":"\d{4}/, '"ts":"1066'),
    `{"v":1,"mark":"nonsense","journal":"${journal.id}"}`,
    `{"v":1,"gap":"no such cause","journal":"${journal.id}","seq":7}`,
    Buffer.from([0x7b, 0xff, 0xfe, 0x7d]),
  ]
  await stack.send([...good.slice(0, 100), ...poison, ...good.slice(100)], 1)
  expect(await settled(stack, journal.subject, 400)).toEqual(once(400))
  const letters = await readTopic(
    kafkaOptions(stack.kafka.address),
    topics.decisionsDeadLetters,
    ({ length }) => length >= poison.length,
  )
  const textOf = (value: string | Buffer | null) => (value === null ? null : value.toString('latin1'))
  // First what does not even look like a record, then what ClickHouse refused.
  expect(letters.map(({ value }) => textOf(value)).sort()).toEqual(poison.map(textOf).sort())
  expect(letters[0]?.headers).toMatchObject({ 'x-error-topic': topics.decisions, 'x-error-partition': '1' })
  expect(await gapsOf(journal.id)).toEqual([])
  expect(await metering.metric('weir_dead_letters_total')).toBe(poison.length)
  const { status } = await metering.ready()
  expect(status).toBe(200)
})

test('a record that forges its place in Kafka is counted at the place where it stands', async () => {
  const journal = newJournal()
  const [text = ''] = journal.take(1, 1)
  await stack.send([text.replace(/\}$/, ',"partition":63,"offset":1}')], 1)
  expect(await settled(stack, journal.subject, 1)).toEqual(once(1))
  const place = `SELECT partition FROM weir.decisions WHERE subject = '${journal.subject}'`
  expect(await stack.rows(place)).toEqual([{ partition: 1 }])
})

test('a record of a megabyte with an error deep within it is a dead letter, and a correct one is a row', async () => {
  const journal = newJournal()
  const [large = '', rest = ''] = journal.take(2)
  const wide = large.replace('"plan":"free"', `"plan":"${'x'.repeat(1_047_500)}"`)
  for (const value of [wide, wide.replace('"cost":2', '"cost":{}'), rest]) await stack.send([value], 2)
  expect(await settled(stack, journal.subject, 2)).toEqual(once(2))
})

test('duplicates are dropped by their number, and missing numbers are recorded once', async () => {
  const journal = newJournal()
  const first = journal.take(50, 3)
  const later = journal.take(10, 3, { seq: 60 })
  await stack.send([...first, ...first.slice(20), ...later, ...first.slice(0, 5), ...later], 3)
  expect(await settled(stack, journal.subject, 60)).toEqual(once(60))
  const gap = `${encodeGapOpen({ cause: 'journal_full', count: 5, fromMs: Date.now(), toMs: Date.now(), detail: 'full' })},"journal":"${journal.id}","seq":70}`
  await stack.send([gap, gap, ...journal.take(3, 3, { seq: 71 }), encodeMark(Date.now(), journal.id, 74, true)], 3)
  expect(await settled(stack, journal.subject, 63)).toEqual(once(63))
  const marks = () =>
    stack.rows<{ seq: string; end: boolean }>(
      `SELECT max(m.seq) AS seq, max(m.end) AS end FROM weir.marks AS m WHERE journal = '${journal.id}' AND partition = 3 HAVING count() > 0`,
    )
  await until(async () => (await marks()).length > 0, 20_000)
  expect(await marks()).toEqual([{ seq: '74', end: true }])
  expect(await gapsOf(journal.id)).toEqual([
    { cause: 'lost', from_seq: 50, to_seq: 59, count: 10 },
    { cause: 'journal_full', from_seq: 70, to_seq: 70, count: 5 },
  ])
})

test('each outcome becomes one row, as a decision does, also when it came twice', async () => {
  const id = newJournal().id
  const lines = Array.from(
    { length: 20 },
    (_, seq) =>
      `{"v":1,"id":"${crypto.randomUUID()}","ts":"2026-11-01 10:00:00.000","subject":"s","route":"GET /","method":"GET","status":200,"duration_ms":12.5,"bytes_in":1,"bytes_out":2,"upstream":"demo","error":"","journal":"${id}","seq":${seq}}`,
  )
  await stack.send([...lines, 'bad', ...lines], 0, topics.outcomes)
  const count = () =>
    stack.rows<{ n: number }>(`SELECT toUInt32(count()) AS n FROM weir.outcomes WHERE journal = '${id}'`)
  await until(async () => (await count())[0]?.n === 20, 20_000)
  await until(async () => (await metering.metric('weir_duplicate_records_total')) >= 20, 5_000)
  expect(await count()).toEqual([{ n: 20 }])
})

test('a month whose only record is refused leaves the block’s other months counted once', async () => {
  const journal = newJournal()
  const [other = ''] = newJournal().take(1)
  const tsMs = Date.parse(`${new Date().toISOString().slice(0, 7)}-01`) - 86_400_000
  await stack.send(journal.take(100, 0, { tsMs }), 1)
  expect(await settled(stack, journal.subject, 100)).toEqual(once(100))
  const before = await metering.metric('weir_dead_letters_total')
  await stack.send([...journal.take(300, 0, { seq: 100, tsMs }), other.replace('"cost":2', '"cost":"much"')], 1)
  await waitUntil(async () => (await metering.metric('weir_dead_letters_total')) > before, { deadlineMs: 60_000 })
  // These come to the tables after everything of the block before.
  await stack.send(journal.take(100, 0, { seq: 400, tsMs }), 1)
  expect(await settled(stack, journal.subject, 500)).toEqual(once(500))
})

test('a stream of bad records stops its partition with a reason in /readyz, and the other partitions go on', async () => {
  const journal = newJournal()
  await stack.send(
    Array.from({ length: 200 }, () => 'bad'),
    5,
  )
  const isStopped = async () => {
    const { status, text } = await metering.ready()
    return status === 503 && text.includes('TOO_MANY_BAD')
  }
  await until(isStopped, 20_000)
  expect(await metering.metric('weir_consumer_stopped_partitions')).toBe(1)
  await stack.send(journal.take(10), 0)
  expect(await settled(stack, journal.subject, 10)).toEqual(once(10))
  onTestFinished(() => metering.kill('SIGKILL'))
})
