import { sha256 } from '@weir/ingress/testing/memory-ingress.ts'
import { tokenScopes } from '@weir/policy/access-token.ts'
import { afterAll, describe, expect, test } from 'vitest'
import { startConsoleStack } from '../../support/console-stack.ts'
import { countAttempts } from '../../support/count-attempts.ts'

const scopes = tokenScopes.filter((scope) => scope !== 'admin')
const policy = {
  version: 1,
  plans: { free: { limits: ['minute'] } },
  limits: { minute: { algorithm: 'fixed_window', size: 100, window: '1m' } },
  subjects: { acme: { plan: 'free', keys: [{ sha256: sha256('acme-key'), id: 'acme-1' }] } },
  tokens: Object.fromEntries(scopes.map((scope) => [scope, { sha256: sha256(`${scope}-token`), scopes: [scope] }])),
}

const { tables, desk: admin, close } = await startConsoleStack({ policy })
const url = admin.environment.WEIR_CONSOLE_URL
await tables.client.command({
  query: `INSERT INTO weir.decisions (ts, subject, outcome, cost, count, limits)
    SELECT now64(3) - 60, 'acme', 'allow', 1, 1, [('minute', 100, 1, 99, 0, map(), '')]`,
})
afterAll(close)

interface Sent {
  readonly method?: string
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: string | Uint8Array<ArrayBuffer>
}
async function send(path: string, { method = 'GET', headers = {}, body }: Sent = {}) {
  const response = await fetch(`${url}${path}`, {
    method,
    signal: AbortSignal.timeout(60_000),
    redirect: 'manual',
    headers: { authorization: `Bearer ${admin.environment.WEIR_ADMIN_TOKEN}`, ...headers },
    ...(body === undefined ? {} : { body }),
  })
  return { status: response.status, headers: response.headers, text: await response.text() }
}
const json = { 'content-type': 'application/json' }
/** What the policy says now, and how much has been counted. */
const everything = async () => [
  (await send('/v1/policy')).text,
  await tables.rows(
    // Not the policy's history: it has a row of each change, of those that are undone, too.
    "SELECT name, total_rows FROM system.tables WHERE database = 'weir' AND name != 'policy_history' ORDER BY name",
  ),
]

const seenRows = async () => JSON.parse((await send('/v1/usage?subject=acme&step=total&by=subject')).text).rows

test('the console answers who used what, which no attempt below may see', async () => {
  expect(await seenRows()).toHaveLength(1)
})

describe('a value that is SQL', () => {
  countAttempts('SQL in every parameter of the console', 'a 4xx, or no rows: no part of the value is run as SQL')
  const parameterNames = (text: string) => text.split(' ')
  const parameters = {
    '/v1/usage': parameterNames(
      'subject from to by step time_zone plan denied_by subject_prefix top order other after format csv period compare fill reason mode ip met_limit subject=none&not_met_limit',
    ),
    '/v1/decisions': parameterNames(
      'subject from to time_zone plan denied_by reason mode ip subject_prefix status min_cost corrected limit after',
    ),
    '/v1/dimensions/route': ['prefix', 'subject', 'from', 'after'],
    '/v1/utilization': parameterNames(
      'subject subject_prefix met_limit from to time_zone share_from share_to order numbers limit after',
    ),
    '/v1/outcomes': ['subject', 'from', 'to', 'by', 'step', 'time_zone'],
    '/v1/spend': ['subject'],
    '/v1/spend/month': ['period', 'top', 'format'],
    '/v1/usage/export': ['from', 'since', 'until', 'after', 'limit'],
    '/v1/search': ['q'],
    '/v1/alerts': parameterNames('subject type endpoint from to time_zone after limit'),
    '/v1/changes': ['after', 'limit'],
    '/v1/keys': ['subject', 'after', 'limit'],
    '/v1/plans': ['after', 'limit'],
    '/v1/silences': ['after', 'limit'],
    '/v1/policy': ['subject'],
    '/v1/blocks': ['limit', 'subject', 'ip', 'format', 'after'],
    '/v1/alerts/': [''],
    '/v1/plans/': [''],
  }
  const values = [
    "'",
    '"',
    '`',
    '\\',
    "' OR 1=1 --",
    "') OR 1=1 --",
    "\\' OR 1=1 --",
    '0) OR (1=1',
    "acme' --",
    "acme'/*",
    "'; DROP TABLE weir.decisions; --",
    "' UNION ALL SELECT name, 1 FROM system.tables --",
    "'||'",
    'acme\0',
    '{subject:String}',
    "subject'); SELECT sleep(3) --",
    'subject, sleep(3)',
    '٣',
    "UTC') FORMAT CSV --",
    '%27 OR 1=1',
  ]
  const attempts = Object.entries(parameters).flatMap(([path, names]) =>
    names.flatMap((name) => values.map((value) => [path, name, value] as const)),
  )

  test.each(attempts)('%s %s = %j finds nothing and breaks nothing', async (path, name, value) => {
    const encoded = encodeURIComponent(value)
    const { status, text } = await send(name === '' ? `${path}${encoded}` : `${path}?${name}=${encoded}`)
    expect([200, 400, 404]).toContain(status)
    expect(text).not.toMatch(/DB::|ClickHouse|Exception|stack|system\.tables\b.*\d/)
    const said = JSON.parse(text)
    // `after` is a place in a list of names, and begins anywhere.
    if (status === 200 && name !== 'after') expect(said.rows ?? said.items).toEqual([])
  })
})

test('after all that SQL the table has its row still', async () => {
  expect(await seenRows()).toHaveLength(1)
})

/** The scope that each route takes, by what docs/admin-api.md says of it. */
function scopeOf(method: string, path: string): string {
  if (/^\/v1\/spend|\/(quote|export)$/.test(path)) return 'billing'
  if (/^\/v1\/(usage|outcomes|decisions|dimensions|utilization)/.test(path)) return 'usage'
  if (path.startsWith('/v1/tokens') || path.endsWith('/secret')) return 'admin'
  if (path === '/v1/identity' && method !== 'GET') return 'admin'
  if (/\/(keys|portal)\b/.test(path)) return 'keys'
  if (/\/limits\/(reset|unblock)|\/lift$/.test(path) || (path === '/v1/blocks' && method === 'POST')) return 'limits'
  return method === 'GET' ? 'read' : 'write'
}

/** They take no token but in the body or the path: open-routes.test.ts attacks them. */
const isOpen = (path: string) => path === '/session' || /^\/(?:unsubscribe|confirm)\//.test(path)
const { paths }: { paths: Record<string, object> } = JSON.parse((await send('/openapi.json')).text)
const routes = Object.entries(paths).flatMap(([path, methods]) =>
  isOpen(path) ? [] : Object.keys(methods).map((method) => `${method.toUpperCase()} ${path}`),
)

describe('every route of the console', () => {
  countAttempts('Tokens × scopes × routes of the console', 'a 401, 429 or 403 that names the missing scope')
  const bearer = (token: string) => ({ authorization: `Bearer ${token}` })
  const credentials: Readonly<Record<string, Record<string, string>>> = {
    'no credential': { authorization: '' },
    'an unknown token': bearer('weir_token_0000'),
    "a subject's key": bearer('acme-key'),
    "a token's hash": bearer(sha256('write-token')),
    "a token's name": bearer('write'),
    'a token as Basic': { authorization: `Basic ${Buffer.from('root:test-admin-token').toString('base64')}` },
    'a token in X-API-Key': { authorization: '', 'x-api-key': 'test-admin-token' },
    'a token as a cookie': { authorization: '', cookie: 'token=test-admin-token' },
    'two tokens in one': bearer('write-token, test-admin-token'),
  }
  const idOf = (path: string) =>
    path
      .replace('{name}', 'none')
      // A stream that is right has no end to wait for.
      .replace('/stream', '/stream?of=none')
      .replace('{id}', /alerts/.test(path) ? '2ed6657d-e927-568b-95e1-2665a8aea6a2' : 'none')
  const ask = (route: string, headers: Record<string, string>) => {
    const [method = '', path = ''] = route.split(' ')
    const body = /^P/.test(method) ? { body: '{}' } : {}
    return send(idOf(path), { method, headers: { ...(/^P/.test(method) ? json : {}), ...headers }, ...body })
  }

  test.each(routes.flatMap((route) => Object.keys(credentials).map((credential) => [route, credential])))(
    '%s with %s is refused',
    async (route = '', credential = '') => {
      // 429 after a hundred a minute.
      expect([401, 429]).toContain((await ask(route, credentials[credential] ?? {})).status)
    },
  )

  /** What a route takes besides its scope. */
  const furtherScopes: Readonly<Record<string, string>> = {
    'PUT /v1/upstreams/{name}': 'admin',
    'POST /v1/policy/impact': 'usage',
  }
  test.each(routes.flatMap((route) => scopes.map((scope) => [route, scope] as const)))(
    '%s with a token of the scope %s alone answers by its scope',
    async (route, scope) => {
      const [method = '', path = ''] = route.split(' ')
      const needed = scopeOf(method, path)
      const { status, text } = await ask(route, bearer(`${scope}-token`))
      const opens = ['GET /v1/blocks', 'GET /v1/subjects/{id}/limits'].includes(route) && scope === 'limits'
      if (needed !== scope && !opens) expect([status, JSON.parse(text).scope]).toEqual([403, needed])
      else if (furtherScopes[route] !== undefined)
        expect([status, JSON.parse(text).scope]).toEqual([403, furtherScopes[route]])
      else expect([401, 403]).not.toContain(status)
    },
  )
})

describe('a name that every object of JavaScript has', () => {
  countAttempts('`__proto__` and similar names', 'no 5xx, and no unrequested data afterwards')
  const names = ['__proto__', 'constructor', 'prototype', 'toString', 'hasOwnProperty', '__defineGetter__']
  const bodies: Readonly<Record<string, string>> = {
    plans: '{"limits":["minute"]}',
    prices: '{"currency":"EUR","lines":[]}',
    limits: '{"algorithm":"fixed_window","size":1,"window":"1m"}',
    refusals: '{"status":418}',
    upstreams: '{"url":"https://a.example.com"}',
    meters: '{"preset":"mcp"}',
    rateCards: '{"currency":"USD","unknown":"count","prices":[]}',
    endpoints: '{"url":"https://a.example.com","secretEnv":"A"}',
    watches: '{"alert":"weir.denied_rate.high","per":"all"}',
    unsubscribed: '{"email":["0123456789ab"]}',
    subjects: '{"plan":"free"}',
  }
  test.each(Object.keys(bodies).flatMap((path) => names.map((name) => [path, name] as const)))(
    'PUT /v1/%s/%s makes what it names, or nothing',
    async (path, name) => {
      const before = await everything()
      expect((await send(`/v1/${path}/${name}`)).status).toBe(404)
      const put = await send(`/v1/${path}/${name}`, { method: 'PUT', headers: json, body: bodies[path] ?? '' })
      expect([201, 400, 422]).toContain(put.status)
      if (put.status === 201) expect((await send(`/v1/${path}/${name}`, { method: 'DELETE' })).status).toBe(204)
      expect(await everything()).toEqual(before)
    },
  )
  test.each(
    names.flatMap((name) => [
      `{"limits":["minute"],"${name}":{"limits":[]}}`,
      `{"limits":["${name}"]}`,
      `{"${name}":{"limits":["minute"]}}`,
    ]),
  )('the plan %s is refused', async (body) => {
    expect([400, 422]).toContain((await send('/v1/plans/odd', { method: 'PUT', headers: json, body })).status)
    expect((await send('/v1/plans/odd')).status).toBe(404)
  })
  test.each(names.flatMap((name) => [`/v1/usage?${name}=x`, `/v1/alerts?${name}[a]=x`, `/v1/policy?subject=${name}`]))(
    '%s is refused or ignored',
    async (path) => {
      expect([200, 400, 404]).toContain((await send(path)).status)
    },
  )
})

describe('a policy that is a bomb', () => {
  countAttempts('YAML and JSON bombs', 'a 4xx within seconds, and the policy is unchanged')
  const lines = (count: number, line: (n: number) => string) =>
    Array.from({ length: count }, (_, n) => line(n)).join('')
  const laughs = (of: (n: number) => string) => `a0: &a0 [x]\n${lines(30, (n) => `a${n + 1}: &a${n + 1} ${of(n)}\n`)}`
  const bombs: Readonly<Record<string, readonly [string, string | Uint8Array<ArrayBuffer>, string?]>> = {
    'aliases of aliases': ['/v1/policy', laughs((n) => `[*a${n},*a${n},*a${n},*a${n},*a${n},*a${n},*a${n},*a${n}]`)],
    'merges of merges': [
      '/v1/policy',
      `b0: &b0 {x: 1}\n${lines(30, (n) => `b${n + 1}: &b${n + 1}\n  <<: [*b${n}, *b${n}, *b${n}]\n`)}`,
    ],
    'an alias within itself': ['/v1/policy', 'version: 1\nplans: &a { free: *a }\n'],
    'aliases as keys': ['/v1/policy', `? &a [b, c]\n: 1\n${lines(1_000, () => '? *a\n: 1\n')}`],
    'brackets without end in YAML': ['/v1/policy', '['.repeat(200_000)],
    'brackets in JSON': ['/v1/policy', `${'['.repeat(200_000)}${']'.repeat(200_000)}`, 'application/json'],
    'braces in JSON': ['/v1/policy', `${'{"a":'.repeat(100_000)}1${'}'.repeat(100_000)}`, 'application/json'],
    'brackets in a plan': [
      '/v1/plans/odd',
      `{"limits":${'['.repeat(20_000)}${']'.repeat(20_000)}}`,
      'application/json',
    ],
    'brackets in a plan without end': ['/v1/plans/odd', `{"limits":${'['.repeat(400_000)}`, 'application/json'],
    'braces in an identity': ['/v1/identity', `${'{"a":'.repeat(50_000)}1${'}'.repeat(50_000)}`, 'application/json'],
    'nested YAML': ['/v1/policy', lines(3_000, (n) => `${' '.repeat(n)}a:\n`)],
    'one line of 15 MB': ['/v1/policy', `version: 1\nplans: "${'a'.repeat(15_000_000)}"\n`],
    'more than any policy': ['/v1/policy', `# ${'a'.repeat(17_000_000)}\n`],
    'escapes that are none': ['/v1/policy', `version: 1\nplans: "${'\\x'.repeat(500_000)}"\n`],
    '20,000 wrong plans': ['/v1/policy', `version: 1\nplans:\n${lines(20_000, (n) => `  p${n}: 7\n`)}`],
    'endless numbers': [
      '/v1/policy',
      `version: 1\nlimits: { a: { algorithm: fixed_window, size: 1${'0'.repeat(10_000)}, window: 1m } }\n`,
    ],
    'one key twice': ['/v1/policy', '{"version":1,"version":1}', 'application/json'],
    'tags of code': ['/v1/policy', 'version: !!js/function "function () { return 1 }"\n'],
    'a binary tag': ['/v1/policy', 'version: !!binary AAAA\n'],
    'several documents': ['/v1/policy', lines(10_000, () => '---\nversion: 1\n')],
    'UTF-16': ['/v1/policy', new Uint8Array(Buffer.from('version: 1\n', 'utf16le'))],
    'no UTF-8': ['/v1/policy', new Uint8Array([0x61, 0x3a, 0x20, 0xff, 0xfe])],
    'an unknown type': ['/v1/policy', 'version: 1', 'text/html'],
  }
  test.each(Object.keys(bombs))('%s: refused, and the policy is unchanged', async (name) => {
    const [path, body, type = 'application/yaml'] = bombs[name] ?? ['', '']
    const before = await send('/v1/policy')
    const startedMs = performance.now()
    const { status } = await send(path, { method: 'PUT', headers: { 'content-type': type }, body })
    expect([400, 413, 415, 422]).toContain(status)
    expect(performance.now() - startedMs).toBeLessThan(10_000)
    expect((await send('/v1/policy')).text).toBe(before.text)
  })
})

describe('a line break in a value', () => {
  countAttempts('Line breaks in names, values and paths', 'the client can inject no header and no log line')
  const broken = ['\r\nX-Forged: 1', '\nX-Forged: 1', '\r\n\r\n{"level":50,"msg":"X-Forged"}', '\u2028X-Forged: 1']
  const put = (path: string, body: object) =>
    [path, { method: 'PUT', headers: json, body: JSON.stringify(body) }] as const
  const attempts = broken.flatMap((text) => [
    [`/v1/plans/a${encodeURIComponent(text)}`, {}] as const,
    [`/nowhere${encodeURIComponent(text)}`, {}] as const,
    [`/v1/usage?subject=a${encodeURIComponent(text)}`, {}] as const,
    put(`/v1/plans/a${encodeURIComponent(text)}`, { limits: ['minute'] }),
    put('/v1/endpoints/odd', { url: `https://a.example.com/${text}`, secretEnv: 'A' }),
    put('/v1/endpoints/odd', { url: 'https://a.example.com/', secretEnv: `A${text}` }),
    put('/v1/limits/odd', {
      algorithm: 'fixed_window',
      size: 1,
      window: '1m',
      onExceed: { challenge: `https://a.example.com/${text}` },
    }),
    [
      '/v1/tokens',
      { method: 'POST', headers: json, body: JSON.stringify({ name: `a${text}`, scopes: ['read'] }) },
    ] as const,
    ['/v1/subjects/acme/keys', { method: 'POST', headers: json, body: JSON.stringify({ id: `a${text}` }) }] as const,
  ])
  test.each(attempts)('%s %j', async (path, sent) => {
    const { status, headers } = await send(path, sent)
    expect(status).toBeLessThan(500)
    expect(headers.get('x-forged')).toBeNull()
    const log = (await admin.readLog()).split('\n').filter((line) => line !== '')
    for (const line of log) expect(() => JSON.parse(line)).not.toThrow()
    expect(log.filter((line) => JSON.parse(line).msg === 'X-Forged')).toEqual([])
  })
})

describe('what the console has logged', () => {
  countAttempts('Secrets in the log of the console', 'no token, key or hash is in it')
  test.each([...scopes.map((scope) => `${scope}-token`), 'test-admin-token', 'acme-key', sha256('acme-key')])(
    'does not have %s',
    async (secret) => expect(await admin.readLog()).not.toContain(secret),
  )
})
