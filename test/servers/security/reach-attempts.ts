import { uuidv7 } from '@weir/core/ids.ts'

/** Decisions of a minute ago, by whose they are. */
export const decisionIds = { acme: uuidv7(Date.now() - 60_000), bolt: uuidv7(Date.now() - 60_000) }
/** Alerts, by what they are about. */
export const alertIds = {
  acme: '2ed6657d-e927-568b-95e1-000000000001',
  bolt: '2ed6657d-e927-568b-95e1-000000000002',
  shadow: '2ed6657d-e927-568b-95e1-000000000003',
  shared: '2ed6657d-e927-568b-95e1-000000000004',
  endpoint: '2ed6657d-e927-568b-95e1-000000000005',
}

const monthAt = (months: number) =>
  new Date(Date.UTC(new Date().getUTCFullYear(), new Date().getUTCMonth() + months, 1)).toISOString()
const thisMonth = `from=${monthAt(0)}&to=${monthAt(1)}`

/** What is sent besides the path. */
export interface Sent {
  readonly method?: string
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: string
}

/** What an answer must be: a status, or 200 with rows of acme and of nobody else, or without any. */
export type Must = number | 'own' | 'empty'
const json = { method: 'POST', body: '{}' }
/** By the numbers of the list of attempts in docs/security.md: what is asked, and what must come. */
export const attempts: readonly (readonly [number, string, Must, Sent?])[] = [
  [1, '/v1/usage?subject=bolt', 403],
  [1, '/v1/outcomes?subject=bolt', 403],
  [2, '/v1/usage?subject=acme,bolt', 403],
  [2, '/v1/usage?subject=acme&subject=bolt', 403],
  [2, '/v1/outcomes?subject=acme&subject=bolt', 403],
  ...['/v1/usage', '/v1/outcomes'].flatMap((path) => [
    [1, path, 403, { method: 'POST', body: '{"subject":"bolt"}' }] as const,
    [2, path, 403, { method: 'POST', body: '{"subject":["acme","bolt"]}' }] as const,
    [3, path, 'own', { method: 'POST', body: '{"by":"subject","step":"total"}' }] as const,
    [3, path, 'own'] as const,
    [3, `${path}?step=total`, 'own'] as const,
    [3, `${path}?by=subject&step=total`, 'own'] as const,
    [3, `${path}?subject=acme&step=total`, 'own'] as const,
  ]),
  [1, '/v1/usage?unit=tokens&subject=bolt', 403],
  [1, '/v1/usage?unit=tokens&subject=bolt&format=csv', 403],
  [2, '/v1/usage', 403, { method: 'POST', body: '{"unit":"tokens","subject":["acme","bolt"]}' }],
  [3, '/v1/usage?unit=tokens', 'own'],
  [3, '/v1/usage?unit=tokens&by=subject,dimension.team,meter&step=total', 'own'],
  [3, '/v1/usage?unit=tokens&unit=usd&by=subject&step=total&format=jsonl', 'own'],
  [4, '/v1/usage?unit=tokens&not_subject=acme', 'empty'],
  [5, '/v1/usage?unit=tokens&subject_prefix=b', 'empty'],
  [8, '/v1/usage?unit=tokens&by=subject&top=1&other=true&step=total', 'own'],
  ...['key_id=bolt-a', 'meter=bolt-meter', 'dimension.team=bolt-team', 'not_dimension.team=acme-team'].map(
    (filter) => [9, `/v1/usage?unit=tokens&${filter}`, 'empty'] as const,
  ),
  [13, `/v1/usage?unit=tokens&dimension.team=${encodeURIComponent("x' OR 1=1 --")}`, 'empty'],
  [13, `/v1/usage?unit=tokens&by=${encodeURIComponent("dimension.x', 'bolt'")}`, 400],
  [13, `/v1/usage?unit=${encodeURIComponent("x' OR 1=1 --")}`, 400],
  [3, '/v1/usage?step=minute', 'own'],
  [3, '/v1/usage?within=acme&by=subject&step=total', 'own'],
  [3, '/v1/usage?within=acme&unit=tokens&by=subject,parents&step=total', 'own'],
  // Whom a customer is below is not told by a guess either.
  ...['within=bolt', 'within=bolt&within=none', 'parent=bolt'].flatMap((tree) => [
    [3, `/v1/usage?${tree}&by=subject&step=total`, 'empty'] as const,
    [3, `/v1/usage?${tree}&unit=tokens&by=subject&step=total`, 'empty'] as const,
  ]),
  [4, '/v1/usage?within=none', 'empty'],
  [13, `/v1/usage?within=${encodeURIComponent("x') OR (1=1")}`, 'empty'],
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
  ...['subject_prefix', 'key_id', 'plan', 'route', 'method', 'outcome', 'denied_by', 'reason', 'ip', 'met_limit'].map(
    (name) => [13, `/v1/usage?${name}=${encodeURIComponent("x' OR 1=1 --")}`, 'empty'] as const,
  ),
  ...['met_limit=bolt-limit', 'met_limit=tried', 'mode=shadow', 'not_mode=enforce', 'ip=192.0.2.90'].map(
    (filter) => [filter.startsWith('ip') ? 12 : 11, `/v1/usage?${filter}`, 'empty'] as const,
  ),
  [11, '/v1/usage?by=met_limit,mode,reason&step=total', 'own'],
  [12, '/v1/usage?by=ip&step=total', 'own'],
  ...['reason', 'mode', 'ip', 'met_limit'].map(
    (by) => [15, `/v1/usage?by=${by}&format=csv&subject=bolt`, 403] as const,
  ),
  ...'subject key_id plan route denied_by ip reason mode met_limit unit meter dimension dimension.team'
    .split(' ')
    .flatMap((name) => [
      [10, `/v1/dimensions/${name}`, 'own'] as const,
      [5, `/v1/dimensions/${name}?prefix=bolt`, 'empty'] as const,
      [1, `/v1/dimensions/${name}?subject=bolt`, 403] as const,
    ]),
  [11, '/v1/dimensions/denied_by?prefix=tried', 'empty'],
  [13, `/v1/dimensions/route?prefix=${encodeURIComponent("x' OR 1=1 --")}`, 'empty'],
  [16, '/v1/dimensions/route?after=x', 400],
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
  ...['/v1/usage', '/v1/outcomes'].flatMap((path) => [
    ...['csv', 'jsonl', 'parquet'].map((format) => [15, `${path}?subject=bolt&format=${format}`, 403] as const),
    [15, `${path}?subject=bolt`, 403, { headers: { accept: 'text/csv' } }] as const,
    [15, `${path}?by=subject&step=total&format=jsonl`, 'own'] as const,
    [15, `${path}?not_subject=acme&step=total&by=subject&format=jsonl`, 'empty'] as const,
  ]),
  [16, `/v1/usage?after=${Buffer.from('["x",1]').toString('base64url')}`, 400],
  [16, '/v1/outcomes?after=', 400],
  [16, '/v1/usage?subject=bolt&after=x', 403],
  [14, '/v1/usage?subject=bolt&from=yesterday', 403],
  [14, '/v1/usage?period=2026-11&subject=bolt', 403],
  [14, '/v1/usage?period=current', 'own'],
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
  ...['bolt', 'BOLT', 'none', 'bolt?route=GET%20/bolt', ''].map((name) => {
    const [id = '', query] = name.split('?')
    return [24, `/v1/subjects/${id}/limits${query === undefined ? '' : `?${query}`}`, 403] as const
  }),
  ...['acme%2F..%2Fbolt', 'acme//bolt', 'acme;/bolt', 'acme/../bolt'].flatMap((name) => [
    [25, `/v1/subjects/${name}`, 403] as const,
    [25, `/v1/subjects/${name}/limits`, 403] as const,
  ]),
  [26, '/v1/subjects/acme/limits', 'own'],
  [26, '/v1/subjects/acme/limits?ip=192.0.2.90', 403],
  [27, '/v1/subjects/acme/limits?key_id=bolt-a', 404],
  [27, '/v1/subjects/acme/limits?key_id=none-a', 404],
  [11, '/v1/subjects/acme/limits?limit=bolts-own', 404],
  ...['keys', 'keys?subject=bolt', 'keys?subject=acme', 'tokens', 'policy', 'policy?subject=bolt'].map(
    (path) => [28, `/v1/${path}`, 403] as const,
  ),
  ...[
    'plans',
    'plans/top',
    'limits',
    'routes',
    'refusals',
    'upstreams',
    'meters',
    'rateCards',
    'endpoints',
    'watches',
    'unsubscribed',
    'identity',
  ].map((path) => [28, `/v1/${path}`, 403] as const),
  [29, '/v1/changes', 403],
  [29, '/v1/changes/01a20287-6fb6-7000-8000-000000000000', 403],
  [29, '/v1/status', 403],
  ...['', '?subject=acme', '?subject=bolt', '?format=text', '?ip=192.0.2.7'].map(
    (query) => [29, `/v1/blocks${query}`, 403] as const,
  ),
  [31, '/v1/blocks/none/lift', 403, json],
  [30, '/v1/alerts?subject=bolt', 403],
  [30, `/v1/alerts/${alertIds.bolt}`, 404],
  [30, `/v1/alerts/${alertIds.bolt}`, 404, { method: 'HEAD' }],
  [30, `/v1/alerts/${alertIds.bolt.toUpperCase()}`, 404],
  [30, `/v1/alerts/${alertIds.shadow}`, 404],
  [30, `/v1/alerts/${alertIds.endpoint}`, 404],
  [30, '/v1/alerts', 'own'],
  // Deliveries are the operator's: their outcomes are not found out by asking for each.
  [30, '/v1/alerts?outcome=failed', 403],
  [30, '/v1/alerts?outcome=delivered&outcome=queued', 403],
  [30, '/v1/alerts?outcome=failed&subject=bolt', 403],
  [30, '/v1/alerts?endpoint=ops', 403],
  [30, '/v1/search?q=bolt', 403],
  [30, '/v1/alerts?outcome[]=failed', 400],
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
  ...['?from=now-1d', '?from=now-1d&subject=acme', '?since=x'].map(
    (query) => [32, `/v1/usage/export${query}`, 403] as const,
  ),
  ...['', '/preview?subject=bolt', '/x'].map((rest) => [32, `/v1/invoices${rest}`, 410] as const),
  [33, '/v1/spend?subject=bolt', 403],
  [33, '/v1/spend?subject=none', 403],
  [33, '/v1/spend?subject=acme', 'own'],
  [33, `/v1/usage?price=true&by=subject&step=total&${thisMonth}`, 'own'],
  [33, `/v1/usage?price=true&by=subject&step=total&${thisMonth}&subject=bolt`, 403],
  [34, '/v1/prices/bolts/quote', 403, json],
  ...['', '?subject=acme', '?subject=bolt', '?met_limit=bolts-own', '?after=x'].map(
    (query) => [34, `/v1/utilization${query}`, 403] as const,
  ),
  [35, '/v1/tokens', 403, { method: 'POST', body: '{"name":"x","scopes":["usage"]}' }],
  [35, '/v1/tokens/limited', 403, { method: 'DELETE' }],
  [35, '/v1/subjects/acme/portal', 403, { method: 'DELETE' }],
  [35, '/v1/policy?dry_run=true', 403, { method: 'PUT', body: '{"version":1}' }],
  ...['', '?subject=bolt', '?subject=acme'].map(
    (query) => [35, `/v1/policy/impact${query}`, 403, { method: 'POST', body: '{"version":1}' }] as const,
  ),
  [35, '/v1/subjects/acme', 403, { method: 'PUT', body: '{"plan":"top"}' }],
  // An empty header is one, too: the cookie of a session goes with none.
  [37, '/v1/usage', 400, { headers: { authorization: '', 'x-api-key': '', cookie: 'weir=test-admin-token' } }],
  [37, '/v1/usage?key=acme-key&token=acme-key', 401, { headers: { authorization: '', 'x-api-key': '' } }],
  [37, '/v1/usage', 400, { headers: { authorization: 'Bearer limited-token', 'x-api-key': 'bolt-key' } }],
  ...[
    ...['weir-subject', 'x-weir-subject', 'x-forwarded-user', 'host'].map((name) => ({ [name]: 'bolt' })),
    { 'x-http-method-override': 'DELETE' },
    { 'x-original-url': '/v1/policy' },
  ].map((headers) => [38, '/v1/usage?by=subject&step=total', 'own', { headers }] as const),
]

/** By the numbers of the list: what is bolt's, and the same of what there is not. The answers must be alike. */
export const alike: readonly (readonly [number, string, string, Sent?])[] = [
  ...['usage', 'outcomes', 'decisions', 'decisions/stream', 'dimensions/route', 'alerts', 'spend'].map(
    (path) => [1, `/v1/${path}?subject=bolt`, `/v1/${path}?subject=none`] as const,
  ),
  [14, '/v1/usage?period=2026-11&subject=bolt', '/v1/usage?period=2026-11&subject=none'],
  [18, `/v1/decisions/${decisionIds.bolt}`, `/v1/decisions/${uuidv7(Date.now() - 60_000)}`],
  [24, '/v1/subjects/bolt', '/v1/subjects/none'],
  [24, '/v1/subjects/bolt/limits', '/v1/subjects/none/limits'],
  [28, '/v1/keys?subject=bolt', '/v1/keys?subject=none'],
  [30, `/v1/alerts/${alertIds.bolt}`, `/v1/alerts/${alertIds.bolt.replace('2ed6', '3ed6')}`],
  [31, '/v1/subjects/bolt/limits/reset', '/v1/subjects/none/limits/reset', json],
  [34, '/v1/prices/bolts/quote', '/v1/prices/none/quote', json],
  [35, '/v1/subjects/bolt/portal', '/v1/subjects/none/portal', json],
]
