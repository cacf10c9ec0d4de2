import { sha256 } from '@weir/ingress/testing/memory-ingress.ts'
import { parseList } from 'structured-headers'
import { expect, test } from 'vitest'
import { startPlainUpstream } from '../support/gateways/plain-upstream.ts'
import { type Sent, send } from '../support/gateways/send.ts'
import { openIngressStack } from '../support/ingress-stack.ts'
import type { Answer } from '../support/openapi-answers.ts'
import { forFile, forTest } from '../support/opened.ts'
import { countOf, readDecisions } from '../support/servers/read-decisions.ts'

const policyOf = (upstream: string) => ({
  version: 1,
  plans: { free: { limits: ['shared'] } },
  // Longer than any run, so that no count starts again in the middle. 200 answers of each of five doors, and each of a
  // batch's decides twice.
  limits: { shared: { algorithm: 'fixed_window', window: '7d', size: 1_200 } },
  // Requests come from there.
  identity: { trustedProxies: ['127.0.0.5/32'] },
  upstreams: { api: { url: upstream, hosts: ['api.test'] } },
  subjects: { acme: { plan: 'free', keys: [{ sha256: sha256('acme') }] } },
})

const upstream = await forFile(startPlainUpstream())
const stack = await forFile(openIngressStack(policyOf(upstream.url)))

interface Door {
  ask(key?: string, sent?: Sent): Promise<Answer>
  /** Of an answer that allowed and of one that did not. */
  readonly statuses: readonly [allowed: number, denied: number]
}

const json = (value: unknown): Sent => ({
  method: 'POST',
  headers: { 'content-type': 'application/json' },
  body: Buffer.from(JSON.stringify(value)),
})

/** Every door of one real process. */
async function open(
  dialect = 'draft10',
): Promise<Record<'proxy' | 'authorize' | 'authorize, 403' | 'check' | 'batch', Door>> {
  const ingress = await forTest(stack.start({ WEIR_RATELIMIT_HEADERS: dialect }))
  const doorTo = (origin: string, usual: Sent, ...statuses: Door['statuses']): Door => ({
    async ask(key, sent = usual) {
      const credential = key === undefined ? {} : { 'x-api-key': key }
      const { status, headers, body } = await send(origin, { ...sent, headers: { ...credential, ...sent.headers } })
      return { statusCode: status, headers, body }
    },
    statuses,
  })
  const { proxy, api } = ingress
  const original = { 'x-original-method': 'GET', 'x-original-uri': '/v1/x' }
  return {
    proxy: doorTo(proxy, { path: '/v1/x', headers: { host: 'api.test' } }, 200, 429),
    authorize: doorTo(api, { path: '/v1/authorize/v1/x' }, 200, 429),
    'authorize, 403': doorTo(api, { path: '/v1/authorize?deny_status=403', headers: original }, 200, 403),
    check: doorTo(api, { ...json({ route: '/v1/x' }), path: '/v1/check' }, 200, 200),
    batch: doorTo(api, { ...json({ checks: [{}, { route: '/v1/x' }] }), path: '/v1/check/batch' }, 200, 200),
  }
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

test('every entry point answers 200 times allowed and 429 times denied, each decided once under one limit', async () => {
  const doors = await open()
  const ids: string[] = []
  const wrong: unknown[] = []
  let answers = 0
  for (const isAllowed of [true, false]) {
    for (let n = 0; n < (isAllowed ? 200 : 429); n += 1) {
      const asked = Object.entries(doors).map(async ([name, { ask, statuses }]) => {
        const answer = await ask('acme')
        if (answer.statusCode !== statuses[isAllowed ? 0 : 1]) wrong.push([name, n, answer.statusCode])
        ids.push(...idsOf(name, answer, isAllowed))
        answers += 1
      })
      await Promise.all(asked)
    }
  }
  expect(wrong).toEqual([])
  expect([answers, ids.length]).toEqual([3_145, 3_774])
  const [peeked] = resultsOf(await doors.check.ask('acme', { ...json({ peek: true }), path: '/v1/check' }))
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
})

test('the dialect of the limits is the one that the environment names', async () => {
  const { headers } = await (await open('draft6')).proxy.ask('acme')
  expect([headers['ratelimit-limit'], headers.ratelimit]).toEqual([expect.stringMatching(/^1200/), undefined])
})
