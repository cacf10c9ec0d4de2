import type { Explanation } from '@weir/api/decisions.ts'
import { topics } from '@weir/contracts/topics.ts'
import { createBoundaryCache } from '@weir/core/calendar/calendar.ts'
import { uuidv7 } from '@weir/core/ids.ts'
import { requirePolicy } from '@weir/policy/reader/require-policy.ts'
import { RedisLimitStore } from '@weir/redis/redis-limit-store.ts'
import { waitUntil } from '@weir/runtime/wait-until.ts'
import { afterAll, expect, inject, test } from 'vitest'
import { startConsoleStack } from '../../support/console-stack.ts'
import { inserterInto, sqlTime } from '../../support/decisions/insert-decisions.ts'
import { openLimiterRedis } from '../../support/test-redis.ts'
import { runWeir } from '../../support/weir-up.ts'

const minute = { algorithm: 'fixed_window', size: 100, window: '1m' }
const policy = {
  version: 1,
  limits: { minute, large: { ...minute, size: 500 } },
  plans: { free: { limits: ['minute'] }, starter: { limits: ['large'] } },
  subjects: { acme: { plan: 'free' } },
}

const historyRows = () =>
  tables.rows<{ offset: number; name: string }>(
    `SELECT toUInt32(h.offset) AS offset, name FROM weir.policy_history AS h FINAL WHERE kind = 'change' ORDER BY h.offset`,
  )
/** Makes a change and waits until the history has it; resolves to its offset. */
async function change(request: string, body: unknown): Promise<{ readonly offset: number; readonly id: string }> {
  const { status, headers } = await desk.ask(request, body)
  expect([200, 201]).toContain(status)
  const id = headers.get('weir-change')
  const found = async () => (await historyRows()).find(({ name }) => name === id)
  const row = await waitUntil(found, { deadlineMs: 60_000, everyMs: 50 })
  return { offset: row?.offset ?? -1, id: id ?? '' }
}
const { tables, desk, close } = await startConsoleStack()
afterAll(close)
const first = await change('PUT /v1/policy', JSON.stringify(policy))
const limits = "[('minute', 100, 98, 2, 19882, map(), '')]"
const { insert, refuse } = inserterInto(tables, { policy: first.offset, limits })

const explain = async (id: string) => await desk.ask<Explanation>(`GET /v1/decisions/${id}`)

const tsMs = Date.now() - 30_000
test('a refusal is explained by its record and the policy of then, with what belongs to it', async () => {
  const id = await refuse(tsMs)
  const { status, body } = await explain(id.toUpperCase())
  expect(status).toBe(200)
  expect(body).toMatchObject({
    id,
    subject: 'acme',
    key_id: 'acme-1',
    outcome: 'deny',
    denied_by: 'minute',
    retry_ms: 19_882,
    summary:
      'Refused by minute: 98 of 100 units were used and the request costs 5. It would have been allowed 19.9 s later.',
    allowed_at: new Date(tsMs + 19_882).toISOString(),
    limits: [
      { name: 'minute', algorithm: 'fixed_window', size: 100, used: 98, remaining: 2, needed: 5, refused: true },
    ],
    policy: { offset: first.offset, exact: true, change: first.id, since_changed: [] },
    outcome_record: null,
    corrections: [],
    alerts: [],
  })
  expect(body.would_have_allowed).toEqual([
    { how: 'wait', ms: 19_882 },
    { how: 'cost', at_most: 2 },
    { how: 'size', limit: 'minute', at_least: 103 },
    { how: 'plan', plan: 'starter', assumed_unused: ['large'] },
  ])
})

test('a limit above is explained by the ancestor whom it counts, as it was then', async () => {
  const above = { plan: 'starter', limits: { large: { size: 700 } }, suspended: 'unpaid' }
  const { offset } = await change('PUT /v1/subjects/group', above)
  const at = "[('large', 700, 9, 691, 19882, map(), 'group')]"
  const id = await refuse(tsMs, {
    policy: offset,
    parents: "['group']",
    limits: at,
    reason: "'blocked'",
    denied_by: "''",
  })
  await change('PUT /v1/subjects/group', { plan: 'starter' })
  const { body } = await explain(id)
  expect(body.limits).toMatchObject([
    { name: 'large', because: ['plan starter of group', "group's own size instead of 500"] },
  ])
  expect(body.summary).toContain('unpaid')
  expect(body.policy?.since_changed.map(({ kind, name }) => `${kind} ${name}`)).toEqual(['subject group'])
})

test('its outcome, its corrections and its alerts are named, and nobody else’s', async () => {
  const [id, other] = [await refuse(tsMs), await refuse(tsMs)]
  for (const [of, adjustment] of [
    [id, -5],
    [other, -4],
  ] as const) {
    const corrects = `toUUID('${of}')`
    await insert('decisions', {
      id: 'generateUUIDv7()',
      ts: sqlTime(tsMs),
      subject: "'acme'",
      outcome: "'allow'",
      corrects,
      adjustment,
    })
    const sent = {
      id: corrects,
      ts: sqlTime(tsMs + 5),
      subject: "'acme'",
      status: 200 - adjustment,
      upstream: "'demo'",
    }
    await insert('outcomes', sent)
  }
  const alert = uuidv7(tsMs)
  await insert('alerts', {
    id: `toUUID('${alert}')`,
    type: "'weir.limit.blocked'",
    subject: "'acme'",
    decision_id: `toUUID('${id}')`,
    time: sqlTime(tsMs),
    period_start: sqlTime(tsMs),
    state: "'raised'",
    data: `'{"limit":"minute"}'`,
  })
  const { body } = await explain(id)
  expect(body.outcome_record).toMatchObject({ status: 205, upstream: 'demo' })
  expect(body.corrections.map(({ adjustment }) => adjustment)).toEqual([-5])
  expect(body.alerts).toEqual([alert])
})

test('what of the policy is otherwise by now is said, and what was then is what counts', async () => {
  const id = await refuse(tsMs)
  await change('PUT /v1/limits/minute', { ...minute, size: 200 })
  const { body } = await explain(id)
  expect(body.limits).toMatchObject([{ size: 100, refused: true }])
  expect(body.policy).toMatchObject({
    exact: true,
    change: first.id,
    since_changed: [{ kind: 'limit', name: 'minute', before: { size: 100 }, now: { size: 200 } }],
  })
  expect((await change('PUT /v1/limits/minute', minute)).offset).toBeGreaterThan(first.offset)
  expect((await explain(id)).body.policy?.since_changed).toEqual([])
})

test('a limit in the version of its subject says that it is the subject’s own', async () => {
  const made = await change('PUT /v1/subjects/acme', { plan: 'free', limits: { minute: { size: 150 } } })
  const limits = "[('minute', 150, 148, 2, 19882, map(), '')]"
  const id = await refuse(tsMs, { policy: made.offset, limits })
  expect((await explain(id)).body.limits).toMatchObject([
    { name: 'minute', because: ['plan free', "acme's own size instead of 100"], size: 150, refused: true },
  ])
  expect((await runWeir(['why', id], desk.environment)).stdout).toContain("plan free, acme's own size instead of 100")
  await change('PUT /v1/subjects/acme', { plan: 'free' })
})

test('a record without the policy’s offset is matched by time, and that is said', async () => {
  const { body } = await explain(await refuse(Date.now(), { policy: -1 }))
  expect([body.policy?.exact, body.policy?.change !== undefined]).toEqual([false, true])
  const before = await explain(await refuse(tsMs - 3_600_000, { policy: -1 }))
  expect([before.status, before.body.policy?.exact, before.body.policy?.change]).toEqual([200, false, undefined])
})

test('a decision that is not there is not metered yet, or unknown once all before it is counted', async () => {
  const id = uuidv7(tsMs)
  const early = await desk.ask<{ type: string; detail: string }>(`GET /v1/decisions/${id}`)
  expect([early.status, early.headers.get('retry-after')]).toEqual([404, '2'])
  expect(early.body.detail).toContain('not metered yet')
  const marked = {
    topic: `'${topics.decisions}'`,
    journal: 'generateUUIDv4()',
    partition: 0,
    mark: sqlTime(Date.now()),
    seq: 1,
  }
  await insert('marks', { ...marked, first_mark: sqlTime(Date.now()), end: 0 })
  const late = await desk.ask<{ type: string }>(`GET /v1/decisions/${id}`)
  expect([late.status, late.body.type]).toEqual([404, 'urn:weir:problem:unknown-decision'])
  expect(late.headers.get('retry-after')).toBeNull()
  for (const wrong of ['x', '0', `{${id}}`, '01934e1b-0000-4000-8000-000000000000']) {
    expect((await desk.ask(`GET /v1/decisions/${encodeURIComponent(wrong)}`)).status).toBe(400)
  }
})

/** Charges a limit of the policy as the ingress would. */
async function charge(subject: string, limit: object, cost: number): Promise<void> {
  const read = requirePolicy(JSON.stringify({ ...policy, limits: { ...policy.limits, minute: limit } }), 'weir.yaml')
  const store = new RedisLimitStore({
    redis: await openLimiterRedis(inject('redisUrl')),
    clock: { nowMs: () => Date.now() },
    deadlineMs: 5_000,
    periodBoundaries: createBoundaryCache(),
  })
  const scope = { subject, keyId: '', ip: '', route: '', method: '' }
  const limits = [...read.limits.values()].filter(({ name }) => name === 'minute')
  await store.decide({ scope, cost, peek: false, limits, timeZone: 'UTC', anchor: 1 })
  store.close()
}

test('what the same request would get now is said, by the counts of now', async () => {
  const subject = `now-${uuidv7(Date.now())}`
  expect((await desk.ask(`PUT /v1/subjects/${subject}`, { plan: 'free' })).status).toBe(201)
  // A window that does not end within the test.
  const long = { ...minute, window: '366d' }
  await change('PUT /v1/limits/minute', long)
  const id = await refuse(tsMs, { subject: `'${subject}'` })
  const stands = async () => (await explain(id)).body.now
  const free = { name: 'minute', size: 100, capacity: 100, used: 0, remaining: 100, admits: true, retry_ms: 0 }
  expect(await stands()).toEqual({ allowed: true, plan: 'free', denied_by: '', limits: [free] })
  await charge(subject, long, 97)
  expect(await stands()).toMatchObject({ allowed: false, denied_by: 'minute', limits: [{ used: 97, remaining: 3 }] })
  expect((await runWeir(['why', id], desk.environment)).stdout).toContain('now: would be refused by minute')
  await change('PUT /v1/limits/minute', { ...long, size: 200 })
  expect(await stands()).toMatchObject({ allowed: true, limits: [{ size: 200, used: 97, admits: true }] })
  await change('PUT /v1/limits/minute', { ...long, size: 3 })
  expect(await stands()).toMatchObject({ allowed: false, limits: [{ admits: false, retry_ms: -1 }] })
  await change('PUT /v1/limits/minute', { ...long, mode: 'shadow', size: 3 })
  expect(await stands()).toMatchObject({ allowed: true, limits: [{ admits: false }] })
  await change('PUT /v1/limits/minute', { ...long, by: ['ip'] })
  expect(await stands()).toMatchObject({ allowed: null, limits: [{ used: null, admits: null }] })
  await change('PUT /v1/limits/minute', minute)
  expect((await desk.ask(`DELETE /v1/subjects/${subject}`)).status).toBe(204)
  expect(await stands()).toBeNull()
}, 30_000)

test('a change is shown before and after, by the API and by weir changes', async () => {
  const { id } = await change('PUT /v1/limits/minute', { ...minute, size: 300 })
  const { status, body } = await desk.ask(`GET /v1/changes/${id.toUpperCase()}`)
  expect([status, body]).toMatchObject([
    200,
    {
      id,
      by: 'root',
      total: 1,
      entities: [{ kind: 'limit', name: 'minute', before: minute, after: { ...minute, size: 300 } }],
    },
  ])
  const shown = await runWeir(['changes', id], desk.environment)
  expect([shown.code, shown.stdout]).toEqual([
    0,
    expect.stringMatching(/^.+ UTC {2}root\n~ limit minute\n {4}size: 100 → 300\n$/),
  ])
  const made = await change('PUT /v1/limits/minute', minute)
  expect((await desk.ask(`GET /v1/changes/${made.id}`)).body).toMatchObject({ entities: [{ after: minute }] })
  const whole = (await desk.ask<{ entities: { name: string; before: object | null }[] }>(`GET /v1/changes/${first.id}`))
    .body
  expect(whole.entities.map(({ name, before }) => [name, before])).toHaveLength(5)
  expect(whole.entities.every(({ before }) => before === null)).toBe(true)
  for (const unknown of ['x', uuidv7(1)]) expect((await desk.ask(`GET /v1/changes/${unknown}`)).status).toBe(404)
})

test('A metered decision says what it held and used of each unit, and how that is known, with its meter and labels', async () => {
  const dims = "map('model', 'gpt-5', 'team', 'search')"
  const held = "map('tokens', 4096, 'output_tokens', 1000)"
  const admitted = { outcome: "'allow'", reason: "'ok'", denied_by: "''", meter: "'chat'", dims, held }
  const settle = async (id: string, units: string, basis: string) =>
    await insert('decisions', {
      id: 'generateUUIDv7()',
      ts: sqlTime(tsMs),
      subject: "'acme'",
      outcome: "'allow'",
      corrects: `toUUID('${id}')`,
      held,
      units,
      basis: `'${basis}'`,
    })
  const why = async (id: string) => (await runWeir(['why', id], desk.environment)).stdout.replaceAll(/ +/g, ' ')
  const id = await refuse(tsMs, admitted)
  expect(await why(id)).toContain('tokens 4,096 -')
  expect(await why(id)).toContain('used: held, not settled · meter chat · model=gpt-5 · team=search')
  await settle(id, "map('tokens', 812)", 'reported')
  const { body } = await explain(id)
  expect(body).toMatchObject({
    meter: 'chat',
    dims: { model: 'gpt-5', team: 'search' },
    held: { tokens: 4_096 },
    basis: '',
  })
  expect(body.corrections).toMatchObject([{ units: { tokens: 812 }, basis: 'reported' }])
  const settled = await why(id)
  for (const line of ['tokens 4,096 812', 'output_tokens 1,000 -', 'used: reported by the response · meter chat'])
    expect(settled).toContain(line)
  const broken = await refuse(tsMs, admitted)
  await settle(broken, "map('tokens', 90)", 'counted')
  expect(await why(broken)).toContain('used: counted by what was seen')
  // A decision whose units were final, and of which nothing was used after all.
  const final = await refuse(tsMs, {
    ...admitted,
    meter: "''",
    held: 'map()',
    units: "map('usd', 7)",
    basis: "'reported'",
  })
  expect(await why(final)).toMatch(/usd - 7\nused: reported by the caller · model/)
  await settle(final, "map('usd', -7)", 'reported')
  expect(await why(final)).toContain('usd - 0')
  const refused = await refuse(tsMs, { meter: "'chat'", dims, units: "map('tokens', 4096)" })
  expect(await why(refused)).toMatch(/UNIT HELD ASKED FOR\ntokens - 4,096\nasked for: not used/)
  expect(await why(await refuse(tsMs))).not.toContain('used: ')
})

test('weir why takes an id, a pasted answer, or the newest refusal of a subject', async () => {
  const why = (args: readonly string[], input = '') => runWeir(['why', ...args], desk.environment, input)
  await refuse(tsMs, { subject: "'caller'" })
  const id = await refuse(tsMs + 1, { subject: "'caller'" })
  await refuse(tsMs + 2, { subject: "'caller'", outcome: "'allow'", reason: "'ok'", denied_by: "''" })
  const named = await why([id])
  expect([named.code, named.stdout.split('  ').slice(0, 3)]).toEqual([0, ['REFUSED', 'caller', 'POST *']])
  const templated = await refuse(tsMs, { subject: "'templates'", route: "'POST /v1/search'" })
  expect((await why([templated])).stdout.split('  ')[2]).toBe('POST /v1/search')
  const pasted = `HTTP/1.1 429 Too Many Requests\r\n< Weir-Decision: ${id.toUpperCase()}\r\nX-Id: ${uuidv7(1)}\r\n\r\n{}`
  for (const input of [pasted, `${id}\n`]) expect((await why(['-'], input)).stdout).toBe(named.stdout)
  // The newest refusal may be on its way to the tables: nothing is said before all until now is counted.
  const last = why(['--subject', 'caller', '--last'])
  const newest = await refuse(tsMs + 3, { subject: "'caller'" })
  await tables.client.command({
    query: `INSERT INTO weir.marks (topic, journal, partition, mark, seq, first_mark, end)
      SELECT '${topics.decisions}', generateUUIDv4(), 0, now64(3) + 600, 1, now64(3), 0`,
  })
  expect((await last).stdout).toBe((await why([newest])).stdout)
  expect(await why(['-'], 'nothing')).toMatchObject({
    code: 2,
    stderr: expect.stringContaining('has no Weir-Decision header'),
  })
  for (const wrong of [[], [id, '--last'], ['--subject', 'caller'], [id, '--subject', 'caller', '--last']]) {
    expect((await why(wrong)).code).toBe(2)
  }
  const none = await why(['--subject', 'nobody', '--last'])
  expect([none.code, none.stderr]).toEqual([1, expect.stringContaining('was refused in the last 30 days')])
})
