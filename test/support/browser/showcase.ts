import { randomUUID } from 'node:crypto'
import { connectClickhouse } from '@weir/clickhouse/connect.ts'
import { uuidv7 } from '@weir/core/ids.ts'
import { uuid7 } from '../../bench/usage/fill-year.ts'
import type { PageStack } from './page-stack.ts'

/** What customers of pictures are called: name, plan, part of all requests, part of these that is refused. */
const customers = [
  ['northwind', 'team', 0.31, 0.004],
  ['lumen', 'team', 0.22, 0.001],
  ['harbor', 'team', 0.14, 0.02],
  ['juniper', 'trial', 0.1, 0.19],
  ['kestrel', 'team', 0.08, 0],
  ['orchid', 'trial', 0.06, 0.06],
  ['quarry', 'trial', 0.04, 0.31],
  ['sable', 'trial', 0.03, 0],
  ['ip:203.0.113.7', '', 0.02, 0.6],
] as const

const window = { algorithm: 'fixed_window', window: '1m' }
/** Parts of the policy that give the pages something to show. */
export const showcasePolicy = {
  limits: {
    'per-minute': { ...window, size: 6_000, title: 'Requests a minute' },
    'trial-minute': { ...window, size: 600 },
    'trial-day': { algorithm: 'fixed_window', size: 5_000, period: 'day', thresholds: ['80%', '100%'] },
    'team-month': {
      algorithm: 'fixed_window',
      size: 4_000_000,
      period: 'month',
      thresholds: ['80%', '100%'],
      title: 'Units a month',
      about: 'A search costs 5 units, a report 20.',
    },
    'per-address': { algorithm: 'token_bucket', size: 100, window: '10s', by: ['ip'], block: '10m' },
  },
  plans: {
    team: {
      limits: ['per-minute', 'team-month'],
      prices: 'api-2026',
      selfService: true,
      ownAlerts: true,
      title: 'Team',
      about: 'For up to 50 people.',
    },
    trial: { limits: ['trial-minute', 'trial-day'], prices: 'api-2026', selfService: true },
  },
  prices: {
    'api-2026': {
      currency: 'EUR',
      flat: '49.00',
      lines: [
        {
          name: 'search',
          routes: ['POST /v1/search'],
          measure: 'units',
          included: 100_000,
          mode: 'graduated',
          tiers: [{ up_to: 1_000_000, unit_amount: '0.0008' }, { unit_amount: '0.0005' }],
        },
        { name: 'other', measure: 'decisions', tiers: [{ unit_amount: '0.00002' }] },
      ],
    },
  },
  routes: [{ match: 'GET /v1/items' }, { match: 'GET /v1/reports/:id', cost: 20 }],
  subjects: Object.fromEntries(
    customers.flatMap(([name, plan]) => (plan === '' ? [] : [[name, { plan, timeZone: 'Europe/Vienna' }]])),
  ),
  endpoints: {
    ops: { url: 'https://hooks.example.com/weir', secretEnv: 'SHOWCASE_HOOK', only: { types: ['weir.allowed.high'] } },
    finance: { type: 'slack', urlEnv: 'SHOWCASE_SLACK', only: { types: ['weir.allowed.dropped'] } },
  },
}

/** Variables that its endpoints name. */
export const showcaseEnv = {
  SHOWCASE_HOOK: `whsec_${Buffer.alloc(32, 7).toString('base64')}`,
  SHOWCASE_SLACK: 'https://hooks.slack.com/services/showcase',
}

const dayMs = 86_400_000
const askEveryMs = 200
/** Decisions that one row stands for, before the last day. */
const countOfOld = 17
const oldDays = 56

const list = (values: readonly (string | number)[]) =>
  `[${values.map((one) => JSON.stringify(one)).join(', ')}]`.replaceAll('"', "'")
const sumsOf = (values: readonly number[]) => values.map((_, at) => values.slice(0, at + 1).reduce((a, b) => a + b, 0))
/** A number from 0 to 1 that follows from the row's. */
const chance = (salt: string) => `(cityHash64(n, '${salt}') / 18446744073709551616.)`

/** Rows of a span, more of them by day than by night and on weekdays, and more of late than at first. */
function insertRows(rows: number, count: number, fromMs: number, toMs: number): string {
  const passed = count === 1 ? '1' : `((ts_ms - ${fromMs}) / ${toMs - fromMs})`
  const [names, plans, shares, refusals] = [0, 1, 2, 3].map((at) => customers.map((one) => one[at] ?? 0))
  const none = '00000000-0000-0000-0000-000000000000'
  return `
INSERT INTO weir.decisions (v, id, ts, subject, key_id, plan, route, method, cost, count, outcome, reason, mode, charged, denied_by, limits, ip, policy, retry_ms,
  journal, seq, topic_id, partition, offset, corrects, adjustment)
WITH
  ${fromMs} + toInt64(${chance('t')} * ${toMs - fromMs}) AS ts_ms,
  fromUnixTimestamp64Milli(ts_ms, 'UTC') AS at,
  toHour(at) + toMinute(at) / 60 AS hour,
  (0.35 + 0.65 * pow(sin(pi() * hour / 24), 2)) * if(toDayOfWeek(at) > 5, 0.55, 1) * (0.7 + 0.3 * ${chance('u')}) AS busy,
  arrayFirstIndex(x -> x >= ${chance('s')}, ${list(sumsOf(shares as number[]))}) AS s,
  [${(names as string[]).map((one) => `'${one}'`).join(', ')}][s] AS who,
  [${(plans as string[]).map((one) => `'${one}'`).join(', ')}][s] AS plan_name,
  arrayFirstIndex(x -> x >= ${chance('r')}, [0.45, 0.92, 1]) AS r,
  ${chance('d')} < [${refusals?.join(', ')}][s] * (0.2 + 1.6 * pow(sin(pi() * hour / 12), 4)) AS is_denied,
  multiIf(plan_name = '', 'per-address', plan_name = 'team', 'per-minute', ${chance('l')} < 0.7, 'trial-minute', 'trial-day') AS denier,
  multiIf(plan_name = 'team', 6000, plan_name = '', 100, 600) AS size, if(plan_name = 'team', 4000000, 5000) AS quota,
  if(is_denied, size - toInt64(${chance('m')} * 4), toInt64(size * ${chance('m')} * 0.8)) AS used,
  toTimeZone(at, 'Europe/Vienna') AS local,
  toDateTime(if(plan_name = 'team', toDate(toStartOfMonth(local) + INTERVAL 1 MONTH), toDate(local) + 1), 'Europe/Vienna') AS quota_end,
  toInt64(quota * if(plan_name = 'team', toDayOfMonth(at) / 34, hour / 25) * (0.4 + 0.3 * (s % 3))) AS used_quota
SELECT 1, toUUID(${uuid7('n')}), at, who, if(plan_name = '', '', concat(who, '-', ['web', 'jobs'][1 + n % 2])), plan_name, ['POST /v1/search', 'GET /v1/items', 'GET /v1/reports/:id'][r], if(r = 1, 'POST', 'GET'),
  [5, 1, 20][r], ${count}, if(is_denied, 'deny', 'allow'), if(is_denied, 'limit', 'ok'), 'enforce', if(is_denied, 'no', 'yes'),
  if(is_denied, denier, ''), if(plan_name = '', [tuple('per-address', 100, used, 0, 4000, map(), '')],
    [tuple(if(plan_name = 'team', 'per-minute', 'trial-minute'), size, used, size - used, 60000 - ts_ms % 60000, map(), ''),
     tuple(if(plan_name = 'team', 'team-month', 'trial-day'), quota, used_quota, quota - used_quota, toUnixTimestamp(quota_end) * 1000 - ts_ms, map(), '')])
   ::Array(Tuple(name LowCardinality(String), size UInt64, used UInt64, remaining UInt64, reset_ms UInt64, by Map(LowCardinality(String), String), at LowCardinality(String))),
  if(plan_name = '', '203.0.113.7', concat('198.51.100.', toString(10 + s))), -1, if(is_denied, 60000 - ts_ms % 60000, 0), '${randomUUID()}', n, '${randomUUID()}', 0, n, toUUID('${none}'), 0
FROM (SELECT number AS n FROM numbers(${rows}))
WHERE ${chance('b')} < busy AND ${chance('g')} < if(s % 3 = 0, 1 - 0.25 * ${passed}, 0.6 + 0.4 * ${passed})
SETTINGS async_insert = 0, insert_deduplicate = 0`
}

/** Metered requests of two months, whose units are final, and one that held and was settled. Lumen has seconds too. */
function insertUnits(fromMs: number, toMs: number, id: string): string[] {
  const settledMs = toMs - 3_600_000
  const columns =
    'v, id, ts, subject, key_id, plan, route, method, cost, count, outcome, reason, mode, charged, denied_by, journal, seq, topic_id, partition, offset, corrects, meter, dims, held, units, basis'
  const none = "toUUID('00000000-0000-0000-0000-000000000000')"
  const common = "'northwind-web', 'team', 'POST /v1/chat/completions', 'POST'"
  const made = `'allow', 'ok', 'enforce', 'yes', '', '${randomUUID()}'`
  const settled = (own: string, count: number, corrects: string, units: string, basis: string) =>
    `SELECT 1, ${own}, fromUnixTimestamp64Milli(toInt64(${settledMs})), 'northwind', ${common}, ${count}, ${count}, ${made}, ${count}, '${randomUUID()}', 0, ${count},
      ${corrects}, 'chat', map('model', 'gpt-5-mini', 'team', 'search'), map('tokens', 4096, 'output_tokens', 1000), ${units}, '${basis}'`
  const insert = (select: string) =>
    `INSERT INTO weir.decisions (${columns}) ${select} SETTINGS async_insert = 0, insert_deduplicate = 0`
  return [
    `WITH ${fromMs} + toInt64(${chance('ut')} * ${toMs - fromMs}) AS ts_ms, toInt64(200 + 3000 * ${chance('uo')}) AS output, toInt64(output * 4 * ${chance('ui')}) AS input
     SELECT 1, toUUID(${uuid7('n')}), fromUnixTimestamp64Milli(ts_ms, 'UTC'), ['northwind', 'lumen', 'harbor'][1 + n % 3], ${common}, 1, 1, ${made}, n, '${randomUUID()}', 0, n,
       ${none}, 'chat', map('model', ['gpt-5', 'gpt-5-mini', 'claude-sonnet-4-5'][1 + cityHash64(n, 'm') % 3], 'team', ['search', 'support'][1 + n % 2]),
       map(), mapUpdate(map('tokens', input + output, 'input_tokens', input, 'output_tokens', output), if(n % 3 = 1, map('seconds', toInt64(2)), map())), if(n % 19 = 0, 'counted', 'reported')
     FROM (SELECT number AS n FROM numbers(20000))`,
    settled(`toUUID('${id}')`, 1, none, 'map()', ''),
    settled('generateUUIDv7()', 0, `toUUID('${id}')`, "map('tokens', 812, 'output_tokens', 640)", 'reported'),
  ].map(insert)
}

/** Answers of upstreams: most are quick, some fail. */
const insertOutcomes = (sinceMs: number) => `
INSERT INTO weir.outcomes (v, id, ts, subject, route, method, status, duration_ms, bytes_in, bytes_out, upstream, error, journal, seq, topic_id, partition, offset)
WITH cityHash64(id) AS h
SELECT 1, id, ts, subject, route, method, multiIf(h % 211 = 0, 502, h % 37 = 0, 404, 200), 8 + 60 * pow((h % 1000) / 1000, 6) * if(method = 'POST', 9, 1), 300, 2400, 'demo', '', '${randomUUID()}', offset, '${randomUUID()}', 0, offset
FROM weir.decisions WHERE outcome = 'allow' AND corrects = toUUID('00000000-0000-0000-0000-000000000000') AND ts > fromUnixTimestamp64Milli(${sinceMs})
SETTINGS async_insert = 0, insert_deduplicate = 0`

/** Alerts of the last day, and their deliveries. */
function alertRows(nowMs: number) {
  const time = (hours: number) => new Date(nowMs - hours * 3_600_000).toISOString().replace('T', ' ').replace('Z', '')
  const day = new Date(Math.floor(nowMs / dayMs) * dayMs).toISOString()
  const tomorrow = new Date((Math.floor(nowMs / dayMs) + 1) * dayMs).toISOString()
  const quota = (limit: string, percent: number, size: number) => ({
    limit,
    percent,
    size,
    used: (size * percent) / 100,
    period_start: day,
    period_end: tomorrow,
    decision_id: randomUUID(),
  })
  const window_ = { count: 4_211, usual: 130, window_start: day, window_end: tomorrow, watch: 'denials' }
  const all = [
    ['weir.quota.reached', 'juniper', 0.4, quota('trial-day', 80, 5_000), ['ops delivered', 'finance delivered']],
    ['weir.denied_rate.high', 'quarry', 1.2, window_, ['ops failed', 'ops failed', 'ops failed']],
    [
      'weir.quota.forecast',
      'harbor',
      3.1,
      { ...quota('team-month', 71, 4_000_000), runs_out: tomorrow },
      ['ops delivered'],
    ],
    ['weir.quota.reached', 'northwind', 7, quota('team-month', 80, 4_000_000), ['ops failed', 'ops delivered']],
  ] as const
  const alerts = all.map(([type, subject, hours, data]) => ({
    id: randomUUID(),
    type,
    subject,
    time: time(hours),
    state: 'raised',
    data: JSON.stringify(data),
    limit: 'limit' in data ? data.limit : '',
    size: 0,
    used: 0,
    percent: 0,
    decision_id: randomUUID(),
    period_start: day.slice(0, 19).replace('T', ' '),
    period_end: tomorrow.slice(0, 19).replace('T', ' '),
  }))
  const deliveries = all.flatMap(([type, subject, hours, , steps], at) =>
    steps.map((step, attempt) => {
      const [endpoint, outcome] = step.split(' ')
      const isFailed = outcome === 'failed'
      return {
        alert_id: alerts[at]?.id,
        alert_type: type,
        subject,
        endpoint,
        outcome,
        attempt: attempt + 1,
        at: time(hours - attempt * 0.05),
        status: isFailed ? 503 : 200,
        ms: isFailed ? 10_000 : 84,
        error: isFailed ? 'The endpoint answered 503.' : '',
        answer: isFailed ? 'upstream timed out' : 'ok',
        next_try: isFailed && attempt === steps.length - 1 ? time(-0.2) : null,
      }
    }),
  )
  return { alerts, deliveries }
}

/**
 * Fills two months of decisions, and what follows of them, into a stack whose policy has `showcasePolicy`. Resolves to
 * the id of a decision that held units and was settled.
 */
export async function fillShowcase({ weir, api }: PageStack, nowMs: number): Promise<string> {
  const client = connectClickhouse(weir.line.clickhouse, 'weir-test-showcase', 60_000)
  const { alerts, deliveries } = alertRows(nowMs)
  await client.command({ query: insertRows(400_000, countOfOld, nowMs - oldDays * dayMs, nowMs - dayMs) })
  await client.command({ query: insertRows(140_000, 1, nowMs - dayMs, nowMs) })
  const settled = uuidv7(nowMs - 3_600_000)
  for (const query of insertUnits(nowMs - oldDays * dayMs, nowMs, settled)) await client.command({ query })
  await client.command({ query: insertOutcomes(nowMs - dayMs) })
  await client.insert({ table: 'weir.alerts', values: alerts, format: 'JSONEachRow' })
  await client.insert({ table: 'weir.deliveries', values: deliveries, format: 'JSONEachRow' })
  await client.close()
  const limit = await api<object>('GET /v1/limits/trial-minute')
  await api('PUT /v1/limits/trial-minute', { ...limit, size: 900 })
  const { token } = await api<{ token: string }>('POST /v1/tokens', { name: 'ci', scopes: ['read', 'write'] })
  await fetch(`${weir.line.console}/v1/plans/team`, {
    method: 'PUT',
    headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
    body: JSON.stringify({ ...showcasePolicy.plans.team, about: 'For up to 80 people.' }),
  })
  await api('POST /v1/subjects/northwind/keys', { id: 'northwind-web' })
  await api('POST /v1/subjects/northwind/keys', {
    id: 'northwind-jobs',
    expires: new Date(nowMs + 30 * dayMs).toISOString(),
  })
  await api('POST /v1/silences', { subjects: ['sable'], for: '2h', reason: 'load test' })
  return settled
}

/** Some requests a second of customers, until it is stopped. */
export function keepAsking({ weir }: PageStack): () => void {
  const routes = ['POST /v1/search', 'GET /v1/items', 'GET /v1/reports/7']
  let at = 0
  const ask = () => {
    at += 1
    const subject = customers[(at * at) % 8]?.[0]
    const body = { subject, route: routes[at % 3], ip: `198.51.100.${10 + (at % 8)}` }
    fetch(`${weir.line.api}/v1/check`, {
      method: 'POST',
      headers: { authorization: 'Bearer gateway-token', 'content-type': 'application/json' },
      body: JSON.stringify(body),
    }).then(
      (answer) => answer.arrayBuffer(),
      // The stack is stopping.
      () => undefined,
    )
  }
  const timer = setInterval(ask, askEveryMs)
  return () => clearInterval(timer)
}
