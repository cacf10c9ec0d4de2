import { createHash } from 'node:crypto'
import { uuidv7 } from '@weir/core/ids.ts'
import { ensureTopics } from '@weir/kafka/ensure-topics.ts'
import { readTopics } from '@weir/kafka/topics-file.ts'
import { kafkaServer } from '@weir/local-kafka/kafka-server.ts'
import { afterAll, beforeAll, describe, expect, inject, test } from 'vitest'
import { countAttempts } from '../../support/count-attempts.ts'
import { kafkaOptions } from '../../support/servers/kafka-topics.ts'
import { type RunningServer, startServer } from '../../support/servers/start-server.ts'
import { startTables, type Tables } from '../../support/servers/tables.ts'
import { type RunningConsole, startConsole } from '../../support/start-console.ts'

/** Decisions of a minute ago, by whose they are. */
const decisionIds = { acme: uuidv7(Date.now() - 60_000), bolt: uuidv7(Date.now() - 60_000) }
const sha256 = (text: string) => createHash('sha256').update(text).digest('hex')
const keysOf = (name: string) => [{ sha256: sha256(`${name}-key`), id: `${name}-a` }]
const policy = {
  version: 1,
  plans: { open: { limits: ['minute'], selfService: true }, top: { limits: ['bolts-own'] } },
  limits: {
    minute: { algorithm: 'fixed_window', size: 100, window: '1m' },
    'bolts-own': { algorithm: 'fixed_window', size: 100, window: '1m' },
    tried: { algorithm: 'fixed_window', size: 100, window: '1m', mode: 'shadow', applies: 'all' },
    shared: { algorithm: 'fixed_window', size: 100, window: '1m', by: ['global'], applies: 'all' },
  },
  subjects: {
    acme: { plan: 'open', keys: keysOf('acme') },
    bolt: { plan: 'top', timeZone: 'Asia/Kathmandu', anchor: 31, selfService: true, keys: keysOf('bolt') },
    gone: { plan: 'open', keys: keysOf('gone') },
    moved: { plan: 'open', keys: keysOf('moved') },
  },
  tokens: {
    limited: { sha256: sha256('limited-token'), scopes: ['usage'], subjects: ['acme'] },
    orphan: { sha256: sha256('orphan-token'), scopes: ['usage'], subjects: ['gone'] },
  },
}
/** Counts that stand in no other answer: one of bolt's in a sum would change its digits. */
const [acmes, bolts] = [7, 90_001]
const alertIds = {
  acme: '2ed6657d-e927-568b-95e1-000000000001',
  bolt: '2ed6657d-e927-568b-95e1-000000000002',
  shadow: '2ed6657d-e927-568b-95e1-000000000003',
  shared: '2ed6657d-e927-568b-95e1-000000000004',
  endpoint: '2ed6657d-e927-568b-95e1-000000000005',
}

let kafka: RunningServer
let tables: Tables
let admin: RunningConsole
let portalToken = ''
let [gonePortal, endedPortal] = ['', '']

const seed = (subject: keyof typeof decisionIds, count: number) => {
  const decisions = [
    ["'allow'", "'enforce'", "''", count],
    ["'allow'", "'shadow'", "'tried'", 1],
    ["'deny'", "'enforce'", `'${subject}-limit'`, 1],
  ] as const
  const rows = decisions.map(
    ([outcome, ...values]) =>
      `SELECT ${outcome === "'deny'" ? `toUUID('${decisionIds[subject]}')` : 'generateUUIDv7()'}, now64(3) - 60, '${subject}', '${subject}-a', '${subject}-plan', 'GET /${subject}', 'GET', 1, ${outcome}, ${values}`,
  )
  const columns = 'id, ts, subject, key_id, plan, route, method, cost, outcome, mode, denied_by, count'
  return `INSERT INTO weir.decisions (${columns}) ${rows.join(' UNION ALL ')}`
}
const alert = (id: string, type: string, subject: string, data: object) =>
  `SELECT toUUID('${id}'), '${type}', '${subject}', now64(3) - 60, now(), 'raised', '${JSON.stringify(data)}'`

beforeAll(async () => {
  kafka = await startServer(kafkaServer)
  await ensureTopics(kafkaOptions(kafka.address), await readTopics())
  tables = await startTables()
  admin = await startConsole({
    ...{ WEIR_KAFKA_BROKERS: kafka.address, WEIR_CLICKHOUSE_URL: tables.url, WEIR_REDIS_URL: inject('redisUrl') },
    WEIR_PORTAL_KEY: 'a key of portals for the tests of reach',
  })
  expect((await admin.ask('PUT /v1/policy', JSON.stringify(policy))).status).toBe(200)
  const reached = { size: 100, used: 80, percent: 80 }
  for (const query of [
    seed('acme', acmes),
    seed('bolt', bolts),
    `INSERT INTO weir.outcomes (id, ts, subject, route, method, status) SELECT generateUUIDv7(), now64(3) - 60, 'acme', 'GET /acme', 'GET', 200`,
    `INSERT INTO weir.outcomes (id, ts, subject, route, method, status) SELECT generateUUIDv7(), now64(3) - 60, 'bolt', 'GET /bolt', 'GET', 200 FROM numbers(${bolts})`,
    `INSERT INTO weir.decisions (id, ts, subject, outcome, cost, count, corrects, adjustment)
      SELECT generateUUIDv7(), now64(3) - 60, 'bolt', 'allow', 0, 0, toUUID('${decisionIds.bolt}'), -1`,
    `INSERT INTO weir.alerts (id, type, subject, time, period_start, state, data) ${[
      alert(alertIds.acme, 'weir.quota.reached', 'acme', { limit: 'minute', ...reached }),
      alert(alertIds.bolt, 'weir.quota.reached', 'bolt', { limit: 'bolts-own', ...reached }),
      alert(alertIds.shadow, 'weir.quota.reached', 'acme', { limit: 'tried', ...reached }),
      alert(alertIds.shared, 'weir.quota.reached', 'acme', { limit: 'shared', ...reached }),
      alert(alertIds.endpoint, 'weir.endpoint.test', 'acme', { endpoint: 'acme' }),
    ].join(' UNION ALL ')}`,
    `INSERT INTO weir.deliveries (alert_id, alert_type, subject, endpoint, at, outcome, attempt, status, ms, error, answer)
      SELECT toUUID('${alertIds.acme}'), 'weir.quota.reached', 'acme', 'operators', now64(3), 'failed', 1, 500, 1, 'secret words', 'secret words'`,
  ]) {
    await tables.client.command({ query })
  }
  const portalOf = async (subject: string) =>
    (await admin.ask<{ token: string }>(`POST /v1/subjects/${subject}/portal`, {})).body.token
  endedPortal = await portalOf('acme')
  await admin.ask('DELETE /v1/subjects/acme/portal')
  portalToken = await portalOf('acme')
  gonePortal = await portalOf('gone')
}, 180_000)
afterAll(async () => {
  await admin?.close()
  await tables?.close()
  await kafka?.close()
})

const bearer = (token: string) => ({ authorization: `Bearer ${token}` })
const credentials = {
  'a portal token': () => bearer(portalToken),
  'its own key': () => ({ 'x-api-key': 'acme-key' }),
  'a token with subjects': () => bearer('limited-token'),
} as const

interface Sent {
  readonly method?: string
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: string
}
async function send(path: string, headers: Readonly<Record<string, string>>, { method = 'GET', ...more }: Sent = {}) {
  const response = await fetch(`${admin.environment.WEIR_CONSOLE_URL}${path}`, {
    ...{ method, redirect: 'manual', signal: AbortSignal.timeout(60_000) },
    headers: {
      ...headers,
      ...(more.body === undefined ? {} : { 'content-type': 'application/json' }),
      ...more.headers,
    },
    ...(more.body === undefined ? {} : { body: more.body }),
  })
  return { status: response.status, headers: response.headers, text: await response.text() }
}

const isSecret = /bolt|9000[0-9]|tried|secret words|operators|"journal"/
/** What an answer must be: a status, or 200 with rows of acme and of nobody else, or without any. */
type Must = number | 'own' | 'empty'
const json = { method: 'POST', body: '{}' }
/** By the numbers of the list of attempts in docs/security.md: what is asked, and what must come. */
const attempts: readonly (readonly [number, string, Must, Sent?])[] = [
  [1, '/v1/usage?subject=bolt', 403],
  [1, '/v1/outcomes?subject=bolt', 403],
  [2, '/v1/usage?subject=acme,bolt', 403],
  [2, '/v1/usage?subject=acme&subject=bolt', 403],
  [2, '/v1/outcomes?subject=acme&subject=bolt', 403],
  ...['/v1/usage', '/v1/outcomes'].flatMap((path) => [
    [3, path, 'own'] as const,
    [3, `${path}?step=total`, 'own'] as const,
    [3, `${path}?by=subject&step=total`, 'own'] as const,
    [3, `${path}?subject=acme&step=total`, 'own'] as const,
  ]),
  [3, '/v1/usage?step=minute', 'own'],
  [4, '/v1/usage?not_subject=acme', 'empty'],
  [4, '/v1/outcomes?not_subject=acme', 'empty'],
  [5, '/v1/usage?subject_prefix=b', 'empty'],
  [5, '/v1/usage?subject_prefix=', 'own'],
  [8, '/v1/usage?by=subject&top=1000&other=true&step=total', 'own'],
  [8, '/v1/usage?by=subject&top=1&order=-count', 'own'],
  ...['key_id=bolt-a', 'plan=bolt-plan', 'route=GET%20/bolt', 'denied_by=bolt-limit', 'denied_by=tried'].map(
    (filter) => [filter.startsWith('denied') ? 11 : 9, `/v1/usage?${filter}`, 'empty'] as const,
  ),
  [10, '/v1/usage?plan=acme-plan', 'own'],
  [11, '/v1/usage?not_denied_by=tried', 'own'],
  ...['subject_prefix', 'key_id', 'plan', 'route', 'method', 'outcome', 'denied_by'].map(
    (name) => [13, `/v1/usage?${name}=${encodeURIComponent("x' OR 1=1 --")}`, 'empty'] as const,
  ),
  ...['BOLT', '%62olt', 'bolt%00', 'bolt%20', 'b%D0%BElt', '', 'acme%20', 'Acme', '%61cme%00'].map(
    (subject) => [6, `/v1/usage?subject=${subject}`, 403] as const,
  ),
  ...['subject[]', 'Subject', 'subject%00', 'subject%20', 'reach', 'param_reach'].map(
    (name) => [7, `/v1/usage?${name}=bolt`, 400] as const,
  ),
  ...['key_id', 'plan', 'route', 'method', 'outcome', 'denied_by'].map(
    (by) => [10, `/v1/usage?by=${by}&step=total`, 'own'] as const,
  ),
  [13, `/v1/usage?subject=${encodeURIComponent("acme' OR 1=1 --")}`, 403],
  [13, `/v1/usage?by=${encodeURIComponent("subject, 'bolt'")}`, 400],
  [16, `/v1/usage?after=${Buffer.from('["x",1]').toString('base64url')}`, 400],
  [16, '/v1/outcomes?after=', 400],
  [16, '/v1/usage?subject=bolt&after=x', 403],
  [14, '/v1/usage?subject=bolt&from=yesterday', 403],
  [14, '/v1/outcomes?subject=bolt&step=year', 403],
  [16, '/v1/alerts?after=2099-01-01T00:00:00Z%20ffffffff-ffff-ffff-ffff-ffffffffffff', 'own'],
  ...['', '/bolt', '/acme', '/nobody'].map((name) => [24, `/v1/subjects${name}`, 403] as const),
  [18, `/v1/decisions/${decisionIds.bolt}`, 404],
  [18, `/v1/decisions/${decisionIds.bolt}`, 404, { method: 'HEAD' }],
  [18, `/v1/decisions/${decisionIds.bolt.toUpperCase()}`, 404],
  [18, `/v1/decisions/%7B${decisionIds.bolt}%7D`, 400],
  [18, `/v1/decisions/${decisionIds.acme}`, 'own'],
  [3, '/v1/decisions', 'own'],
  [3, '/v1/decisions?subject=acme', 'own'],
  [1, '/v1/decisions?subject=bolt', 403],
  [2, '/v1/decisions?subject=acme&subject=bolt', 403],
  [4, '/v1/decisions?not_subject=acme', 'empty'],
  [5, '/v1/decisions?subject_prefix=b', 'empty'],
  [7, '/v1/decisions?subject[]=bolt', 400],
  [11, '/v1/decisions?denied_by=tried', 'empty'],
  [11, '/v1/decisions?mode=shadow', 'empty'],
  [12, '/v1/decisions?ip=192.0.2.90', 'empty'],
  [13, `/v1/decisions?route=${encodeURIComponent("x' OR 1=1 --")}`, 'empty'],
  [16, '/v1/decisions?after=x', 400],
  [19, '/v1/decisions?corrected=true', 'empty'],
  [19, `/v1/decisions?corrects=${decisionIds.bolt}`, 400],
  [20, '/v1/decisions/stream?subject=bolt', 403],
  [20, '/v1/decisions/stream?subject=acme&subject=bolt', 403],
  [20, '/v1/decisions/stream?Subject=acme', 400],
  [27, '/v1/decisions?key_id=bolt-a', 'empty'],
  [27, '/v1/decisions?key_id=bolt-a&status=200', 'empty'],
  [24, '/v1/subjects/bolt/limits', 403],
  ...['acme%2F..%2Fbolt', 'acme//bolt', 'acme;/bolt', 'acme/../bolt'].map(
    (name) => [25, `/v1/subjects/${name}`, 403] as const,
  ),
  ...[
    '/v1/keys',
    '/v1/keys?subject=bolt',
    '/v1/keys?subject=acme',
    '/v1/tokens',
    '/v1/policy',
    '/v1/policy?subject=bolt',
  ].map((path) => [28, path, 403] as const),
  ...['plans', 'plans/top', 'limits', 'routes', 'upstreams', 'endpoints', 'watches', 'identity'].map(
    (path) => [28, `/v1/${path}`, 403] as const,
  ),
  [29, '/v1/changes', 403],
  [29, '/v1/changes/01a20287-6fb6-7000-8000-000000000000', 403],
  [29, '/v1/status', 403],
  [30, '/v1/alerts?subject=bolt', 403],
  [30, `/v1/alerts/${alertIds.bolt}`, 404],
  [30, `/v1/alerts/${alertIds.bolt}`, 404, { method: 'HEAD' }],
  [30, `/v1/alerts/${alertIds.bolt.toUpperCase()}`, 404],
  [30, `/v1/alerts/${alertIds.shadow}`, 404],
  [30, `/v1/alerts/${alertIds.endpoint}`, 404],
  [30, '/v1/alerts', 'own'],
  [30, `/v1/alerts/${alertIds.acme}`, 'own'],
  [31, `/v1/alerts/${alertIds.bolt}/redeliver`, 403, json],
  [31, `/v1/alerts/${alertIds.acme}/redeliver`, 403, json],
  [31, '/v1/deliveries/redeliver', 403, { method: 'POST', body: '{"from":"2026-01-01T00:00:00Z"}' }],
  [31, '/v1/endpoints/operators/test', 403, json],
  [31, '/v1/silences', 403],
  [31, '/v1/silences', 403, { method: 'POST', body: '{"subjects":["acme"],"for":"1h"}' }],
  [31, '/v1/silences/none', 403, { method: 'DELETE' }],
  ...['bolt', 'acme'].flatMap((name) =>
    ['limits/reset', 'limits/unblock', 'keys', 'portal'].map(
      (what) => [what === 'portal' ? 35 : 31, `/v1/subjects/${name}/${what}`, 403, json] as const,
    ),
  ),
  ...['prices', 'prices/bolts'].map((path) => [34, `/v1/${path}`, 403] as const),
  [33, '/v1/invoices/preview?subject=bolt', 403],
  [34, '/v1/prices/bolts/quote', 403, json],
  [35, '/v1/tokens', 403, { method: 'POST', body: '{"name":"x","scopes":["usage"]}' }],
  [35, '/v1/tokens/limited', 403, { method: 'DELETE' }],
  [35, '/v1/subjects/acme/portal', 403, { method: 'DELETE' }],
  [35, '/v1/policy?dry_run=true', 403, { method: 'PUT', body: '{"version":1}' }],
  [35, '/v1/subjects/acme', 403, { method: 'PUT', body: '{"plan":"top"}' }],
  [37, '/v1/usage', 401, { headers: { authorization: '', 'x-api-key': '', cookie: 'weir=test-admin-token' } }],
  [37, '/v1/usage?key=acme-key&token=acme-key', 401, { headers: { authorization: '', 'x-api-key': '' } }],
  [37, '/v1/usage', 400, { headers: { authorization: 'Bearer limited-token', 'x-api-key': 'bolt-key' } }],
  ...[
    { 'weir-subject': 'bolt' },
    { 'x-weir-subject': 'bolt' },
    { 'x-forwarded-user': 'bolt' },
    { 'x-http-method-override': 'DELETE' },
    { 'x-original-url': '/v1/policy' },
    { host: 'bolt' },
  ].map((headers) => [38, '/v1/usage?by=subject&step=total', 'own', { headers }] as const),
]

const listed = attempts.map(([number, path, must, sent = {}]) => ({ number, path, must, sent }))

describe('what is not acme’s is out of reach of', () => {
  countAttempts('One subject’s credentials, asking for what is another’s', 'a 4xx, or rows of its own subject alone')
  describe.each(Object.keys(credentials) as (keyof typeof credentials)[])('%s', (credential) => {
    test.each(listed)('$number: $path is $must', async ({ path, must, sent }) => {
      const { status, headers, text } = await send(path, credentials[credential](), sent)
      expect(status).toBe(typeof must === 'number' ? must : 200)
      if (sent.method === 'HEAD') expect(text).toBe('')
      else if (path.includes('/alerts/')) expect(text.replaceAll(alertIds.bolt, '')).not.toMatch(isSecret)
      else if (typeof must !== 'number' || status === 403) expect(text).not.toMatch(isSecret)
      expect(headers.get('weir-change')).toBeNull()
      if (typeof must === 'number') return
      const { rows, items, ...one } = JSON.parse(text)
      if (must === 'empty') expect(rows).toEqual([])
      else expect(rows ?? items ?? [one]).not.toEqual([])
      for (const row of rows ?? items ?? [one]) expect([row.subject ?? 'acme', row.other]).toEqual(['acme', undefined])
    })

    test('sees its own numbers, as who may see all does', async () => {
      const [own] = JSON.parse((await send('/v1/usage?step=total', credentials[credential]())).text).rows
      const root = bearer(admin.environment.WEIR_ADMIN_TOKEN)
      const [all] = JSON.parse((await send('/v1/usage?step=total&subject=acme', root)).text).rows
      expect(own).toEqual(all)
      expect(own).toEqual({
        count: acmes + 2,
        allowed: acmes + 1,
        denied: 1,
        cost: acmes + 1,
      })
    })

    test('16: has no use for a cursor of bolt’s page, nor for one of another question of its own', async () => {
      const nextOf = async (query: string, headers: Record<string, string>) =>
        JSON.parse((await send(`/v1/usage?${query}`, headers)).text).next
      const question = 'by=outcome,denied_by&step=total&limit=1'
      const cursors = [
        await nextOf(question, { 'x-api-key': 'bolt-key' }),
        await nextOf(question, bearer(admin.environment.WEIR_ADMIN_TOKEN)),
        await nextOf(question.replace('outcome,', ''), credentials[credential]()),
      ]
      for (const cursor of cursors) {
        expect(cursor).toEqual(expect.any(String))
        const { status, text } = await send(`/v1/usage?${question}&after=${cursor}`, credentials[credential]())
        expect([status, JSON.parse(text).type]).toEqual([400, 'urn:weir:problem:cursor-invalid'])
      }
    })

    test('sees no limit in shadow, no count that others share, and nothing of deliveries', async () => {
      const refused = JSON.parse((await send('/v1/usage?by=denied_by&step=total', credentials[credential]())).text).rows
      expect(refused.map((row: { denied_by: string }) => row.denied_by).toSorted()).toEqual(['', 'acme-limit'])
      const { items } = JSON.parse((await send('/v1/alerts', credentials[credential]())).text)
      const seen = items.map((one: { id: string; data: object; deliveries: object }) => [
        one.id,
        one.data,
        one.deliveries,
      ])
      expect(seen.toSorted()).toEqual([
        [alertIds.acme, { limit: 'minute', size: 100, used: 80, percent: 80 }, {}],
        [alertIds.shared, { limit: 'shared', size: 100, used: null, percent: null }, {}],
      ])
    })

    test('is told nothing about who there is, by status, size or time', async ({ annotate }) => {
      const names = ['bolt', 'none'] as const
      const times: Record<string, number[]> = { bolt: [], none: [] }
      const answers = new Set<string>()
      for (let round = 0; round < 200; round += 1) {
        for (const name of names) {
          const startedMs = performance.now()
          const { status, text } = await send(`/v1/usage?subject=${name}`, credentials[credential]())
          times[name]?.push(performance.now() - startedMs)
          answers.add(`${status} ${text}`)
        }
      }
      expect(answers.size).toBe(1)
      const [bolt = 0, none = 0] = names.map((name) => times[name]?.toSorted((a, b) => a - b)[100])
      await annotate(`medians of 200: ${bolt.toFixed(3)} ms for bolt, ${none.toFixed(3)} ms for nobody`)
      expect(Math.abs(bolt - none)).toBeLessThan(Math.max(0.3 * none, 0.5))
    })
  })
})

describe('a credential that is over', () => {
  countAttempts('Credentials of subjects that are over', 'a 401, or what is of the subject that has the key now')
  const statusOf = async (headers: Record<string, string>) => (await send('/v1/usage', headers)).status

  test('36: a portal token that was ended is 401', async () => expect(await statusOf(bearer(endedPortal))).toBe(401))

  test('39: a key that moved to bolt reads bolt’s, and nothing of its subject before', async () => {
    expect(await statusOf({ 'x-api-key': 'moved-key' })).toBe(200)
    const { moved: _, ...others } = policy.subjects
    const subjects = { ...others, bolt: { ...others.bolt, keys: [...keysOf('bolt'), ...keysOf('moved')] } }
    expect((await admin.ask('PUT /v1/policy', JSON.stringify({ ...policy, subjects }))).status).toBe(200)
    const { text } = await send('/v1/usage?by=subject&step=total', { 'x-api-key': 'moved-key' })
    expect(JSON.parse(text).rows.map((row: { subject: string }) => row.subject)).toEqual(['bolt'])
    expect((await send('/v1/usage?subject=moved', { 'x-api-key': 'moved-key' })).status).toBe(403)
  })

  test('39: with its subject end its key, its portal and the tokens that name nobody else', async () => {
    const all = () =>
      Promise.all([{ 'x-api-key': 'gone-key' }, bearer(gonePortal), bearer('orphan-token')].map(statusOf))
    expect(await all()).toEqual([200, 200, 200])
    expect((await admin.ask('DELETE /v1/subjects/gone')).status).toBe(204)
    expect(await all()).toEqual([401, 401, 401])
  })

  test('39: a revoked key is 401', async () => {
    expect((await admin.ask('DELETE /v1/keys/acme-a')).status).toBe(204)
    expect(await statusOf({ 'x-api-key': 'acme-key' })).toBe(401)
  })

  test('a key reads nothing once selfService is off, for its plan or for it alone', async () => {
    expect(await statusOf({ 'x-api-key': 'bolt-key' })).toBe(200)
    expect((await admin.ask('PUT /v1/subjects/bolt', { plan: 'open', selfService: false })).status).toBe(200)
    expect(await statusOf({ 'x-api-key': 'bolt-key' })).toBe(401)
    expect((await admin.ask('PUT /v1/subjects/bolt', { plan: 'open' })).status).toBe(200)
    expect(await statusOf({ 'x-api-key': 'bolt-key' })).toBe(200)
    expect((await admin.ask('PUT /v1/plans/open', { limits: ['minute'] })).status).toBe(200)
    expect(await statusOf({ 'x-api-key': 'bolt-key' })).toBe(401)
  })
})
