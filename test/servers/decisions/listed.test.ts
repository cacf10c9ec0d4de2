import type { DecisionPage } from '@weir/api/decisions.ts'
import { afterAll, expect, test } from 'vitest'
import { startConsoleStack } from '../../support/console-stack.ts'
import { inserterInto, sqlTime } from '../../support/decisions/insert-decisions.ts'

const nowMs = Date.now()
const [minute, day] = [60_000, 86_400_000]
const { tables, desk, close } = await startConsoleStack()
afterAll(close)
const limits = "[('minute', 100, 98, 2, 19882, map('ip', '192.0.2.7'), '')]"
const { insert, refuse } = inserterInto(tables, { policy: 3, ip: "'192.0.2.7'", limits })
const ofBolt = { subject: "'bolt'", outcome: "'allow'", reason: "'ok'", denied_by: "''", cost: 1, ip: "''" }
const fifth = await refuse(nowMs - 30 * minute, { cost: 9, key_id: "'acme-2'", reason: "'blocked'" })
const alike: string[] = []
for (let one = 0; one < 3; one += 1) alike.push(await refuse(nowMs - 2 * minute))
const first = await refuse(nowMs - minute, ofBolt)
/** The newest first. */
const ids = [first, ...alike.toSorted().toReversed(), fifth]
const shadowed = await refuse(nowMs - 10 * day, { outcome: "'allow'", mode: "'shadow'", shadowed_by: "'minute'" })
const corrects = `toUUID('${fifth}')`
const correction = { id: 'generateUUIDv7()', ts: sqlTime(nowMs - 30 * minute), subject: "'acme'", outcome: "'allow'" }
await insert('decisions', { ...correction, cost: 0, count: 0, corrects, adjustment: -4, charged: "'yes'" })
await insert('outcomes', {
  id: `toUUID('${first}')`,
  ts: sqlTime(nowMs - minute + 5),
  subject: "'bolt'",
  status: 503,
  upstream: "'demo'",
})

const list = async (query = '') =>
  await desk.ask<DecisionPage & { readonly detail: string; readonly type: string }>(`GET /v1/decisions?${query}`)
const idsOf = async (query: string) => {
  const { status, body } = await list(query)
  expect([status, body.detail]).toEqual([200, undefined])
  return body.rows.map(({ id }) => id)
}

test('without a question it is the last hour, the newest first, with what came afterwards', async () => {
  const { body } = await list()
  expect(body.rows.map(({ id }) => id)).toEqual(ids)
  expect(body.rows[0]).toMatchObject({
    subject: 'bolt',
    outcome: 'allow',
    retry_ms: null,
    corrections: [],
    outcome_record: { status: 503, upstream: 'demo' },
  })
  expect(body.rows[1]).toMatchObject({
    ts: new Date(nowMs - 2 * minute).toISOString(),
    subject: 'acme',
    key_id: 'acme-1',
    cost: 5,
    count: 1,
    outcome: 'deny',
    reason: 'limit',
    denied_by: 'minute',
    retry_ms: 19_882,
    ip: '192.0.2.7',
    limits: [{ name: 'minute', size: 100, used: 98, remaining: 2, reset_ms: 19_882, by: { ip: '192.0.2.7' } }],
    outcome_record: null,
  })
  expect(body.rows.at(-1)?.corrections).toMatchObject([{ adjustment: -4, charged: 'yes' }])
})

test.each([
  ['subject=bolt', [0]],
  ['not_subject=bolt&min_cost=6', [4]],
  ['subject_prefix=b', [0]],
  ['key_id=acme-2', [4]],
  ['outcome=allow', [0]],
  ['reason=blocked&reason=journal_full', [4]],
  ['not_reason=blocked&outcome=deny', [1, 2, 3]],
  ['ip=192.0.2.7&min_cost=9', [4]],
  ['status=503&status=200', [0]],
  ['status=200', []],
  ['corrected=true', [4]],
  ['mode=shadow', []],
] as const)('%s finds what it says', async (query, places) => {
  expect(await idsOf(query)).toEqual(places.map((place) => ids[place]))
})

test('pages joined are the list, also within one millisecond, whatever comes in between', async () => {
  const seen: string[] = []
  let after = ''
  do {
    const { status, headers, body } = await list(`limit=2${after}`)
    expect(status).toBe(200)
    seen.push(...body.rows.map(({ id }) => id))
    expect(headers.get('link') === null).toBe(body.next === null)
    if (body.next !== null) expect(headers.get('link')).toBe(`</v1/decisions?limit=2&after=${body.next}>; rel="next"`)
    after = body.next === null ? '' : `&after=${body.next}`
    if (seen.length === 2) await refuse(Date.now())
  } while (after !== '')
  expect(seen).toEqual(ids)
})

test('a cursor of another question is refused', async () => {
  const { next } = (await list('limit=2')).body
  const { status, body } = await list(`outcome=deny&after=${next}`)
  expect([status, body.type]).toEqual([400, 'urn:weir:problem:cursor-invalid'])
})

test('a day at once, and a month where a subject, a key or an address is named', async () => {
  const [dayAgo, before] = [new Date(nowMs - day).toISOString(), new Date(nowMs - 11 * day).toISOString()]
  expect(await idsOf(`from=${dayAgo}&to=${new Date(nowMs).toISOString()}`)).toEqual(ids)
  const refused = await list(`from=${before}`)
  expect([refused.status, refused.body.detail]).toEqual([
    400,
    'from and to may be at most 24 hours apart, 31 days if subject, key_id or ip is given',
  ])
  for (const named of ['subject=acme', 'key_id=acme-1', 'ip=192.0.2.7']) {
    expect(await idsOf(`from=${before}&mode=shadow&${named}`)).toEqual([shadowed])
  }
  const tooLong = await list(`from=${new Date(nowMs - 32 * day).toISOString()}&subject=acme`)
  expect([tooLong.status, tooLong.body.detail]).toEqual([400, 'from and to may be at most 31 days apart'])
})

test('everything that is wrong with a question is said at once', async () => {
  const { status, body } = await list('limit=0&status=ok&status=no&corrected=yes&min_cost=-1&colour=red')
  expect(status).toBe(400)
  for (const name of ['limit', 'status', 'corrected', 'min_cost', 'unknown parameters: colour']) {
    expect(body.detail).toContain(name)
  }
  expect(body.detail.match(/status must/g)).toHaveLength(1)
})
