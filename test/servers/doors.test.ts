import { sha256 } from '@weir/ingress/testing/memory-ingress.ts'
import { redisServer } from '@weir/local-redis/redis-server.ts'
import { freePorts } from '@weir/runtime/ports.ts'
import { parseList } from 'structured-headers'
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { type PlainUpstream, startPlainUpstream } from '../support/gateways/plain-upstream.ts'
import { type Sent, send } from '../support/gateways/send.ts'
import { type IngressStack, openIngressStack } from '../support/ingress-stack.ts'
import { type Answer, createAnswerChecks, type OpenApiDocument } from '../support/openapi-answers.ts'
import { readMetric } from '../support/read-metric.ts'
import { countOf, readDecisions } from '../support/servers/read-decisions.ts'
import { startServer } from '../support/servers/start-server.ts'

const subjects = ['acme', 'few', 'away']
/** Longer than any run, so that no count starts again in the middle. */
const week = { algorithm: 'fixed_window', window: '7d', onUnavailable: 'deny' }
const policyOf = (upstream: string, nowhere: string) => ({
  version: 1,
  // Requests come from there.
  identity: { trustedProxies: ['127.0.0.5/32'] },
  plans: { free: { limits: ['shared'] }, few: { limits: ['few'] } },
  // 200 answers of each of five doors, and each of a batch's decides twice.
  limits: { shared: { ...week, size: 1_200 }, few: { ...week, size: 12 } },
  routes: [{ match: 'POST /v1/bulk', cost: 'json:/items' }],
  upstreams: { api: { url: upstream, hosts: ['api.test'] }, gone: { url: nowhere, hosts: ['gone.test'] } },
  subjects: Object.fromEntries(
    subjects.map((name) => [name, { plan: name === 'few' ? 'few' : 'free', keys: [{ sha256: sha256(name) }] }]),
  ),
})

let stack: IngressStack
let upstream: PlainUpstream
beforeAll(async () => {
  upstream = await startPlainUpstream()
  const [nowhere] = await freePorts(1)
  stack = await openIngressStack(policyOf(upstream.url, `http://127.0.0.1:${nowhere}`))
}, 180_000)
afterAll(async () => {
  await stack?.close()
  await upstream?.close()
})

/** What of a door's answer is wrong by the document of the process that gave it. */
type Wrong = (answer: Answer) => readonly string[]
interface Door {
  ask(key?: string, sent?: Sent): Promise<Answer>
  readonly wrong: Wrong
  /** Of an answer that allowed and of one that did not. */
  readonly statuses: readonly [allowed: number, denied: number]
}

/** Every door of one real process, and what it says that they answer. */
async function open(dialect: string, environment: Readonly<Record<string, string>> = {}) {
  const ingress = await stack.start({ WEIR_RATELIMIT_HEADERS: dialect, ...environment })
  onTestFinished(() => ingress.close())
  const document: OpenApiDocument = JSON.parse((await send(ingress.api, { path: '/openapi.json' })).body)
  const checks = createAnswerChecks(document)
  const ask = async (origin: string, key: string | undefined, sent: Sent): Promise<Answer> => {
    const credential = key === undefined ? {} : { 'x-api-key': key }
    const { status, headers, body } = await send(origin, { ...sent, headers: { ...credential, ...sent.headers } })
    return { statusCode: status, headers, body }
  }
  const json = (value: unknown): Sent => ({
    ...{ method: 'POST', headers: { 'content-type': 'application/json' } },
    body: Buffer.from(JSON.stringify(value)),
  })
  const passed: Wrong = (answer) => (answer.statusCode === 200 ? checks.passed : checks.proxy)(answer)
  const host = { host: 'api.test' }
  const doors = {
    proxy: {
      ask: (key, sent = { path: '/v1/x' }) =>
        ask(ingress.proxy, key, { ...sent, headers: { ...host, ...sent.headers } }),
      ...{ wrong: passed, statuses: [200, 429] },
    },
    authorize: {
      ask: (key, sent = { path: '/v1/authorize/v1/x' }) => ask(ingress.api, key, sent),
      ...{ wrong: checks.route('GET', '/v1/authorize'), statuses: [200, 429] },
    },
    'authorize, 403': {
      ask: (key, sent = {}) =>
        ask(ingress.api, key, {
          ...{ path: '/v1/authorize?deny_status=403', ...sent },
          headers: { 'x-original-method': 'GET', 'x-original-uri': '/v1/x', ...sent.headers },
        }),
      ...{ wrong: checks.route('GET', '/v1/authorize'), statuses: [200, 403] },
    },
    check: {
      ask: (key, sent = json({ route: '/v1/x' })) => ask(ingress.api, key, { path: '/v1/check', ...sent }),
      ...{ wrong: checks.route('POST', '/v1/check'), statuses: [200, 200] },
    },
    batch: {
      ask: (key, sent = json({ checks: [{}, { route: '/v1/x' }] })) =>
        ask(ingress.api, key, { path: '/v1/check/batch', ...sent }),
      ...{ wrong: checks.route('POST', '/v1/check/batch'), statuses: [200, 200] },
    },
  } satisfies Record<string, Door>
  return { ingress, doors, checks, json }
}

interface Result {
  readonly id: string
  readonly allowed: boolean
  readonly retry_after_ms: number
  readonly limits: readonly { readonly used: number; readonly reset_ms: number }[]
}
const resultsOf = ({ body }: Answer): readonly Result[] => {
  const said = body.startsWith('{"') ? JSON.parse(body) : {}
  return said.results ?? (said.allowed === undefined ? [] : [said])
}

const draft10 = (field: unknown) => {
  const [item, ...others] = parseList(`${field}`)
  expect(others).toEqual([])
  return { name: item?.[0], ...Object.fromEntries(item?.[1] ?? []) }
}

/** What every answer of every door keeps to, in draft 10. The ids of its decisions. */
function idsOf(door: string, answer: Answer, isAllowed: boolean): string[] {
  const { headers } = answer
  const results = resultsOf(answer)
  for (const { allowed, retry_after_ms: wait, limits } of results) {
    expect([allowed, wait > 0, wait <= (limits[0]?.reset_ms ?? 0)]).toEqual([isAllowed, !isAllowed, true])
  }
  expect(headers['retry-after'] === undefined).toBe(isAllowed || results.length > 0)
  if (door === 'batch') {
    expect([headers['weir-decision'], headers.ratelimit]).toEqual([undefined, undefined])
    return results.map(({ id }) => id)
  }
  const state = draft10(headers.ratelimit)
  expect(draft10(headers['ratelimit-policy'])).toEqual({ name: 'shared', q: 1_200, w: 604_800 })
  expect(state).toEqual({ name: 'shared', r: isAllowed ? expect.any(Number) : 0, t: expect.any(Number) })
  if (headers['retry-after'] !== undefined) {
    expect(headers['retry-after']).toMatch(/^[1-9]\d*$/)
    expect(Number(headers['retry-after'])).toBeGreaterThanOrEqual(Number(Object(state).t))
    expect(headers['x-weir-problem'] ?? answer.body).toContain('"violated-policies":["shared"]')
  }
  for (const { id } of results) expect(id).toBe(headers['weir-decision'])
  return [`${headers['weir-decision']}`]
}

describe('every entry point of a real process', () => {
  test('answers 200 times allowed and 429 times denied as it says in its own document, each decided once under one limit', async () => {
    const { doors, json } = await open('draft10')
    const ids: string[] = []
    const faults: unknown[] = []
    let answers = 0
    for (const isAllowed of [true, false]) {
      for (let n = 0; n < (isAllowed ? 200 : 429); n += 1) {
        const asked = Object.entries(doors).map(async ([name, { ask, wrong, statuses }]) => {
          const answer = await ask('acme')
          const found = wrong(answer)
          if (found.length > 0 || answer.statusCode !== statuses[isAllowed ? 0 : 1]) {
            faults.push([name, n, answer.statusCode, found])
          }
          ids.push(...idsOf(name, answer, isAllowed))
          answers += 1
        })
        await Promise.all(asked)
      }
    }
    expect(faults).toEqual([])
    expect([answers, ids.length]).toEqual([3_145, 3_774])
    const [peeked] = resultsOf(await doors.check.ask('acme', json({ peek: true })))
    expect(peeked?.limits[0]?.used).toBe(1_200)
    expect(upstream.seen).toHaveLength(200)

    // Denials from memory are one record a second with their number in it, under the id that each of them was answered.
    const counts = new Map<string, number>()
    const records = await readDecisions(
      stack.kafka,
      () => true,
      (found) => countOf(found) >= ids.length,
    )
    for (const { id, count } of records) counts.set(id, (counts.get(id) ?? 0) + count)
    const answered = new Map<string, number>()
    for (const id of ids) answered.set(id, (answered.get(id) ?? 0) + 1)
    expect([...counts].toSorted()).toEqual([...answered].toSorted())
    expect(countOf(records.filter(({ outcome }) => outcome === 'allow'))).toBe(1_200)
    process.stdout.write(
      `${Object.keys(doors).length} doors, ${answers} answers, ${ids.length} decisions, faults ${faults.length}\n`,
    )
  })

  test('refuses what is wrong as it says in its own document, HEAD without a body', async () => {
    const { ingress, doors, checks, json } = await open('draft10')
    const { proxy, authorize, check, batch } = doors
    const api = (sent: Sent): Door => ({ ...check, ask: (key) => check.ask(key, sent), wrong: checks.problem })
    const post = { method: 'POST' }
    const large = json({ items: 'x'.repeat(300_000) })
    const onBulk = { ...large, path: '/v1/bulk' }
    const refused: [status: number, door: Door, key: string | undefined, sent?: Sent][] = [
      ...Object.values(doors).flatMap((door): [number, Door, undefined][] => [[401, door, undefined]]),
      [401, authorize, 'wrong'],
      [401, proxy, 'wrong'],
      [400, proxy, 'acme', { path: '/a%2Fb' }],
      [400, proxy, 'away', { ...json({}), path: '/v1/bulk' }],
      [400, authorize, 'acme', { path: '/v1/authorize/a%2Fb' }],
      [400, authorize, 'acme', { ...post, path: '/v1/authorize/v1/bulk' }],
      [400, check, 'acme', json({ costs: 1 })],
      [400, check, 'acme', { ...json({}), body: Buffer.from('{') }],
      [400, batch, 'acme', json({ checks: [] })],
      [403, check, 'acme', json({ subject: 'away' })],
      [413, proxy, 'away', onBulk],
      [413, check, 'acme', large],
      [413, batch, 'acme', large],
      [415, check, 'acme', { ...post, headers: { 'content-type': 'text/plain' }, body: Buffer.from('{}') }],
      [415, batch, 'acme', { ...post, headers: { 'content-type': 'text/plain' }, body: Buffer.from('{}') }],
      [404, proxy, 'away', { path: '/', headers: { host: 'unknown.test' } }],
      [404, api({ path: '/nowhere' }), 'acme'],
      [405, api({ path: '/v1/check' }), 'acme'],
      [405, api({ path: '/v1/check/batch', method: 'DELETE' }), 'acme'],
      [405, api({ path: '/v1/check', method: 'HEAD' }), 'acme'],
      [502, proxy, 'away', { path: '/', headers: { host: 'gone.test' } }],
      [200, proxy, 'away', { path: '/', method: 'HEAD' }],
      [200, authorize, 'away', { path: '/v1/authorize/x', method: 'HEAD' }],
      [401, proxy, undefined, { path: '/', method: 'HEAD' }],
      [401, authorize, undefined, { path: '/v1/authorize/x', method: 'HEAD' }],
    ]
    for (const [at, [status, door, key, sent]] of refused.entries()) {
      const answer = await door.ask(key, sent)
      expect([at, answer.statusCode, door.wrong(answer)]).toEqual([at, status, []])
      if (sent?.method === 'HEAD') expect(answer.body).toBe('')
      if (status === 405) expect(answer.headers.allow).toBe('POST')
      const isDecided = ![400, 403, 404, 405, 413, 415].includes(status)
      if (isDecided) expect(answer.headers['weir-decision']).toMatch(/^[0-9a-f-]{36}$/)
    }
    expect(upstream.seen.filter(({ method }) => method === 'HEAD')).toHaveLength(1)
    expect(await readMetric(ingress.ops, 'weir_journal_records_refused_total')).toBe(0)
    process.stdout.write(`${refused.length} refusals and HEADs, faults 0\n`)
  })

  test('speaks the dialect that its configuration names, allowed and denied', async () => {
    const { doors } = await open('draft6')
    for (const isAllowed of [true, true, false, false]) {
      for (const [name, { ask, wrong, statuses }] of Object.entries(doors)) {
        const answer = await ask('few')
        expect([name, answer.statusCode, wrong(answer)]).toEqual([name, statuses[isAllowed ? 0 : 1], []])
        expect(answer.headers).not.toHaveProperty('ratelimit')
        const told = [answer.headers['ratelimit-limit'], Number(answer.headers['ratelimit-remaining']) > 0]
        if (name !== 'batch') expect(told).toEqual(['12', isAllowed])
      }
    }
  })

  test('refuses with 503 and Retry-After while Redis is down and a limit says deny', async () => {
    const own = await startServer(redisServer)
    onTestFinished(() => own.close())
    const { doors } = await open('draft10', { WEIR_REDIS_URL: own.address })
    for (const { ask } of Object.values(doors)) expect((await ask('away')).statusCode).toBe(200)
    await own.kill('SIGKILL')
    for (const [name, { ask, wrong }] of Object.entries(doors)) {
      const answer = await ask('away')
      const results = resultsOf(answer)
      expect([name, answer.statusCode, wrong(answer)]).toEqual([name, results.length > 0 ? 200 : 503, []])
      for (const result of results) expect(result).toMatchObject({ allowed: false, reason: 'unavailable' })
      if (name !== 'batch') expect(draft10(answer.headers.ratelimit)).toMatchObject({ name: 'shared', r: 0, t: 1 })
      if (results.length === 0) expect(answer.headers['retry-after']).toBe('1')
    }
  })
})
