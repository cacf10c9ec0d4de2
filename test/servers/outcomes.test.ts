import { randomUUID } from 'node:crypto'
import { insertBlock } from '@weir/clickhouse/insert.ts'
import { readCompleteness } from '@weir/clickhouse/mark-queries.ts'
import { askOutcomes } from '@weir/console/usage/usage-queries.ts'
import { encodeDecisionOpen } from '@weir/contracts/decision.v1.ts'
import { encodeOutcomeOpen, type OutcomeInput } from '@weir/contracts/outcome.v1.ts'
import { decisionInput } from '@weir/contracts/testing/decision-input.ts'
import { uuidv7 } from '@weir/core/ids.ts'
import { Reach } from '@weir/core/usage/reach.ts'
import { afterAll, describe, expect, it } from 'vitest'
import { startTables } from '../support/servers/tables.ts'

const tables = await startTables()
afterAll(() => tables.close())

const noonMs = Date.parse('2026-11-20T12:00:00Z')
const journal = randomUUID()
let seq = 0

/** Lines as metering inserts them, from the encoders' open ones. */
const insert = (table: string, open: readonly string[], dedupToken: string = randomUUID()) => {
  const lines = open.map((line) => {
    seq += 1
    return `${line},"journal":"${journal}","seq":${seq},"partition":1,"offset":${seq}}\n`
  })
  return insertBlock(tables.client, { table, dedupToken, lines: Buffer.from(lines.join('')) })
}

const outcome = (more: Partial<OutcomeInput>): OutcomeInput => ({
  id: uuidv7(noonMs),
  tsMs: noonMs,
  subject: 'acme',
  route: 'GET /a',
  method: 'GET',
  status: 200,
  durationMs: 1,
  bytesIn: 10,
  bytesOut: 100,
  upstream: 'demo',
  error: '',
  ...more,
})

const everything = { only: {}, except: {}, subjectPrefix: undefined }
const question = {
  ...everything,
  fromMs: noonMs,
  toMs: noonMs + 86_400_000,
  by: [],
  step: 'total' as const,
  timeZone: 'UTC',
}

describe('outcomes', () => {
  it('are counted by status and summed once, though their block is inserted twice', async () => {
    const subject = randomUUID()
    const statuses = [101, 200, 204, 304, 404, 499, 500, 600]
    const open = statuses.map((status) =>
      encodeOutcomeOpen(outcome({ subject, status, error: status === 499 ? 'client_gone' : '' })),
    )
    const token = randomUUID()
    for (const _ of [1, 2]) {
      seq = 0
      await insert('weir.outcomes', open, token)
    }
    expect(
      await askOutcomes(tables.client, Reach.everybody, { ...question, only: { subject: [subject] } }),
    ).toMatchObject([
      {
        count: '8',
        status_1xx: '1',
        status_2xx: '2',
        status_3xx: '1',
        status_4xx: '2',
        status_5xx: '2',
        broken: '1',
        bytes_in: '80',
        bytes_out: '800',
      },
    ])
  })

  it('have the quantiles of all answers together, however many quarter hours, routes and inserts they lie in', async () => {
    const subject = randomUUID()
    const some = Array.from({ length: 1_000 }, (_, at) =>
      outcome({ subject, route: `GET /${at % 3}`, tsMs: noonMs + at * 5_000, durationMs: at + 0.5 }),
    )
    await insert('weir.outcomes', some.filter((_, at) => at % 2 === 0).map(encodeOutcomeOpen))
    await insert('weir.outcomes', some.filter((_, at) => at % 2 === 1).map(encodeOutcomeOpen))
    const [all] = await askOutcomes(tables.client, Reach.everybody, { ...question, only: { subject: [subject] } })
    const within = (value: number | null | undefined, wanted: number) => Math.abs((value ?? 0) - wanted) < 10
    expect([within(all?.p50_ms, 500), within(all?.p90_ms, 900), within(all?.p99_ms, 990)]).toEqual([true, true, true])

    const rows = await askOutcomes(tables.client, Reach.everybody, {
      ...question,
      only: { subject: [subject] },
      by: ['route'],
      step: 'hour',
    })
    expect(rows.map(({ ts, route, count }) => [ts, route, count])).toEqual([
      ['2026-11-20T12:00:00+00:00', 'GET /0', '240'],
      ['2026-11-20T12:00:00+00:00', 'GET /1', '240'],
      ['2026-11-20T12:00:00+00:00', 'GET /2', '240'],
      ['2026-11-20T13:00:00+00:00', 'GET /0', '94'],
      ['2026-11-20T13:00:00+00:00', 'GET /1', '93'],
      ['2026-11-20T13:00:00+00:00', 'GET /2', '93'],
    ])
  })

  it('of nobody are none, and no latency', async () => {
    const [row] = await askOutcomes(tables.client, Reach.everybody, { ...question, only: { subject: [randomUUID()] } })
    expect(row).toMatchObject({ count: '0', p50_ms: null, p99_ms: null })
  })

  it('stand beside their decision; a decision without one stands there too', async () => {
    const subject = randomUUID()
    const [answered, unanswered] = [uuidv7(noonMs), uuidv7(noonMs + 1)]
    const decision = decisionInput({ tsMs: noonMs, subject, route: 'GET /a', cost: 3 })
    const open = [answered, unanswered].map((id) => encodeDecisionOpen({ ...decision, id }))
    await insert('weir.decisions', open)
    await insert('weir.outcomes', [
      encodeOutcomeOpen(outcome({ subject, id: answered, status: 503, durationMs: 12.5 })),
    ])
    // Somebody else's record under the same id is none of this decision's.
    await insert('weir.outcomes', [encodeOutcomeOpen(outcome({ subject: randomUUID(), id: unanswered, status: 200 }))])
    const rows = await tables.rows(
      `SELECT id, cost, status, duration_ms FROM weir.decisions_with_outcomes WHERE subject = '${subject}' ORDER BY status DESC`,
    )
    expect(rows).toEqual([
      { id: answered, cost: '3', status: 503, duration_ms: 12.5 },
      { id: unanswered, cost: '3', status: 0, duration_ms: 0 },
    ])
  })
})

describe('the time through which rows are complete', () => {
  const topic = 'weir.decisions.v1'
  const [a, b] = [randomUUID(), randomUUID()]
  const line = (who: string, partition: number, time: string, end = false) =>
    JSON.stringify({ topic, journal: who, partition, mark: `2026-11-20 12:0${time}.000`, seq: 1, end })
  const insertMarks = (lines: readonly string[]) =>
    insertBlock(tables.client, {
      table: 'weir.marks',
      dedupToken: randomUUID(),
      lines: Buffer.from(`${lines.join('\n')}\n`),
    })
  const at = (time: string) => Date.parse(`2026-11-20T12:0${time}Z`)

  it('follows the marks, of which late and repeated ones change nothing', async () => {
    expect(await readCompleteness(tables.client, topic)).toEqual({ completeThroughMs: undefined, silent: [] })
    await insertMarks([line(a, 0, '0:10'), line(a, 1, '0:11'), line(b, 0, '0:12'), line(b, 1, '0:20')])
    await insertMarks([line(b, 0, '0:21')])
    await insertMarks([line(a, 1, '0:05')])
    expect(await readCompleteness(tables.client, topic)).toEqual({ completeThroughMs: at('0:10'), silent: [] })
    expect((await readCompleteness(tables.client, 'weir.outcomes.v1')).completeThroughMs).toBeUndefined()

    await insertMarks([line(b, 0, '2:00'), line(b, 1, '2:01')])
    expect(await readCompleteness(tables.client, topic)).toEqual({
      completeThroughMs: at('2:00'),
      silent: [{ journal: a, sinceMs: at('0:11') }],
    })
    await insertMarks([line(a, 0, '2:02', true), line(a, 1, '2:02', true)])
    expect(await readCompleteness(tables.client, topic)).toEqual({ completeThroughMs: at('2:00'), silent: [] })
  })
})
