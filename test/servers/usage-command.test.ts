import { randomUUID } from 'node:crypto'
import { parseUsageQuery, type UsageQuery } from '@weir/api/query/usage-query.ts'
import { insertBlock } from '@weir/clickhouse/insert.ts'
import { askUsage } from '@weir/console/usage/usage-queries.ts'
import { Reach } from '@weir/core/usage/reach.ts'
import fc from 'fast-check'
import { afterAll, expect, test } from 'vitest'
import { startConsoleStack } from '../support/console-stack.ts'
import { askCommand, type Parameters, readExactly } from '../support/usage/ask-command.ts'
import { decision, insertedRow, question, withIds } from '../support/usage/random-questions.ts'
import { linesOf, randomUnits, unitsFromMs } from '../support/usage/random-units.ts'
import { runWeir } from '../support/weir-up.ts'

const { tables, desk, close } = await startConsoleStack()
const units = { table: 'decisions', dedupToken: 'units', lines: linesOf(randomUnits(100, 3), randomUUID()) }
await insertBlock(tables.client, units)
const values = withIds(fc.sample(decision, { numRuns: 400, seed: 20 })).map(insertedRow)
await tables.client.insert({ table: 'weir.decisions', format: 'JSONEachRow', values })
afterAll(close)

/** The parameters of a question, as a person gives them. */
function parametersOf({ only, except, ...asked }: UsageQuery): Parameters {
  const { fromMs, toMs, by, step, timeZone, subjectPrefix, ranking, comparison } = asked
  const not = Object.entries(except).map(([name, values]) => [`not_${name}`, values] as const)
  const iso = (ms: number) => new Date(ms).toISOString()
  return {
    ...only,
    ...Object.fromEntries(not),
    from: iso(fromMs),
    to: iso(toMs),
    step,
    time_zone: timeZone,
    ...(by.length === 0 ? {} : { by: by.join() }),
    ...(subjectPrefix === undefined ? {} : { subject_prefix: subjectPrefix }),
    ...(comparison === undefined ? {} : { compare: iso(comparison.fromMs) }),
    ...(ranking === undefined ? {} : { order: `${ranking.descending ? '-' : ''}${ranking.measure}` }),
    ...(ranking?.top === undefined ? {} : { top: String(ranking.top), other: String(ranking.other) }),
  }
}

async function askApi(given: Parameters, more: string) {
  const pairs = Object.entries(given).flatMap(([name, value]) =>
    [value].flat().map((one): [string, string] => [name, String(one)]),
  )
  const headers = { authorization: `Bearer ${desk.environment.WEIR_ADMIN_TOKEN}` }
  const url = `${desk.environment.WEIR_CONSOLE_URL}/v1/usage?${new URLSearchParams(pairs)}&${more}`
  const response = await fetch(url, { headers })
  return { status: response.status, text: await response.text() }
}

/** Undefined for a question that takes a subject, a key or an address and names none. */
function readQuestion(given: Parameters): UsageQuery | undefined {
  const parsed = parseUsageQuery(given, { nowMs: Date.now() })
  return parsed.kind === 'problems' ? undefined : parsed.query
}

test('20 random questions have one answer: of the API, of weir usage, and of the tables', {
  timeout: 180_000,
}, async () => {
  await fc.assert(
    fc.asyncProperty(question, async (random) => {
      const given = parametersOf(random)
      const query = readQuestion(given)
      const answer = await askApi(given, 'limit=10000&numbers=text')
      expect(answer.status).toBe(query === undefined ? 400 : 200)
      if (query === undefined) return
      const api = readExactly(answer.text)
      const { rows, totals } = readExactly(await askCommand(desk.environment, given))
      expect([rows, totals]).toEqual([api.rows, api.totals])
      const counted = await askUsage(tables.client, Reach.everybody, query)
      const sums = ({ ts, count, cost }: { ts?: string; count: string; cost: string }) => [ts, count, cost]
      expect(rows.map(sums)).toEqual(counted.map(sums))
      for (const format of ['csv', 'jsonl']) {
        expect(await askCommand(desk.environment, given, { format })).toBe(
          (await askApi(given, `format=${format}`)).text,
        )
      }
    }),
    { numRuns: 20 },
  )
})

test('weir usage --unit asks for units and labels as the API does, as rows, a table and a stream', async () => {
  const [from, to] = [unitsFromMs, unitsFromMs + 7_200_000].map((ms) => new Date(ms).toISOString())
  const args = ['--from', from ?? '', '--to', to ?? '', '--by', 'unit,model,dimension.tag-b']
  const labels = [
    '--dimension',
    'model=large=2',
    '--dimension',
    'model=small',
    '--dimension',
    'tag=größe',
    '--not-basis',
    'bound',
  ]
  const run = (...more: string[]) =>
    runWeir(['usage', '--unit', 'tokens', 'usd', ...args, ...labels, ...more], { ...desk.environment })
  const given = {
    unit: ['tokens', 'usd'],
    'dimension.model': ['large=2', 'small'],
    'dimension.tag': ['größe'],
    not_basis: 'bound',
    from: from ?? '',
    to: to ?? '',
    by: 'unit,model,dimension.tag-b',
    step: 'total',
  }
  const api = JSON.parse((await askApi(given, 'limit=1000')).text)
  expect(api.rows.length).toBeGreaterThan(3)
  expect(JSON.parse((await run('--json')).stdout).rows).toEqual(api.rows)
  expect((await run('--format', 'csv')).stdout).toBe((await askApi(given, 'format=csv')).text)
  const [head = '', first = '', ...lines] = (await run()).stdout.trimEnd().split('\n')
  expect(head.split(/ {2,}/)).toEqual(['UNIT', 'MODEL', 'DIMENSION.TAG-B', 'QUANTITY', 'RECORDS'])
  expect(first).toMatch(/^tokens +large=2 /)
  // Quantities of several units have no sum.
  expect(lines.length).toBe(api.rows.length - 1)
  expect((await run('--dimension', 'model')).stderr).toContain('It must be like model=small.')
})
