import { sha256 } from '@weir/ingress/testing/memory-ingress.ts'
import { expect, test } from 'vitest'
import { startFakeSupplier } from '../../support/fake-supplier.ts'
import { startIngressStack } from '../../support/ingress-stack.ts'
import { forFile } from '../../support/opened.ts'
import { readMetric } from '../../support/read-metric.ts'
import { readDecisions } from '../../support/servers/read-decisions.ts'
import { until } from '../../support/until.ts'

const supplier = await forFile(startFakeSupplier())
const policy = {
  version: 1,
  limits: {
    'tokens-month': { algorithm: 'fixed_window', size: 100_000, period: 'month', unit: 'tokens' },
    'one-at-once': { algorithm: 'concurrency', size: 1 },
  },
  plans: { ai: { limits: ['tokens-month', 'one-at-once'] } },
  upstreams: { supplier: { url: supplier.url, hosts: ['*'] } },
  routes: [{ match: 'POST /v1/chat/completions', meter: 'openai' }],
  subjects: Object.fromEntries(['ann', 'ben'].map((one) => [one, { plan: 'ai', keys: [{ sha256: sha256(one) }] }])),
  tokens: { gate: { sha256: sha256('gate'), scopes: ['check'] } },
}
const stack = await forFile(startIngressStack(policy))
const { ingress } = stack

async function asked(path: string, body: object) {
  const headers = { authorization: 'Bearer gate', 'content-type': 'application/json' }
  const answer = await fetch(`${ingress.api}${path}`, { method: 'POST', headers, body: JSON.stringify(body) })
  return { status: answer.status, body: Object(await answer.json()) }
}
const chat = (subject: string, headers: Record<string, string> = {}) =>
  fetch(`${ingress.proxy}/v1/chat/completions`, {
    method: 'POST',
    headers: { 'x-api-key': subject, 'content-type': 'application/json', 'x-output': '9', ...headers },
    body: JSON.stringify({
      model: 'm',
      messages: [],
      max_tokens: 100,
      stream: true,
      stream_options: { include_usage: true },
    }),
  })
const superseded = () => readMetric(ingress.ops, 'weir_metered_exchanges_total{basis="superseded"')

test.each([
  ['settles', '/v1/settle', 'ann', { units: { input_tokens: 5, output_tokens: 2, tokens: 7 } }, 7],
  ['releases', '/v1/release', 'ben', {}, 0],
] as const)(
  'A request that a token %s while its response is passed on keeps that, its slot and a sign of it',
  async (...given) => {
    const [, path, subject, body, tokens] = given
    const before = await superseded()
    const answer = await chat(subject, { 'x-pause': '3' })
    const id = answer.headers.get('weir-decision') ?? ''
    await until(() => supplier.paused.size === 1)
    const early = await asked(path, { subject, id, ...body })
    expect([early.status, early.body.units.tokens]).toEqual([200, tokens])
    expect((await chat(subject)).status).toBe(429)
    for (const resume of supplier.paused) resume()
    supplier.paused.clear()
    await answer.text()
    expect(supplier.bills.get(id)).toMatchObject({ input_tokens: 20, output_tokens: 9 })
    await until(async () => (await superseded()) === before + 1)
    // One correction, before that of a later request.
    const later = await chat(subject)
    await later.text()
    const laterId = later.headers.get('weir-decision') ?? ''
    const isIts = (one: { readonly subject: string }) => one.subject === subject
    const found = await readDecisions(stack.kafka, isIts, (all) => all.some(({ corrects }) => corrects === laterId))
    expect(found.filter(({ corrects }) => corrects === id).map(({ units }) => units?.tokens)).toEqual([tokens])
    const peek = await asked('/v1/check', { subject, units: { tokens: 0 }, peek: true })
    expect(peek.body.limits).toMatchObject([{ used: tokens + 29 }, { used: 0, remaining: 1 }])
    expect(await superseded()).toBe(before + 1)
  },
)
