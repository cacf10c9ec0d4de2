import { expect, test } from 'vitest'
import { parse } from 'yaml'
import { createRlsClient, type Descriptor, type RlsRequest } from '../../support/envoy-ratelimit/rls-client.ts'
import { startEnvoyWith } from '../../support/gateways/envoy.ts'
import { startModelUpstream } from '../../support/gateways/model-upstream.ts'
import { send } from '../../support/gateways/send.ts'
import { snippet } from '../../support/gateways/start-gateway.ts'
import { openIngressStack } from '../../support/ingress-stack.ts'
import { forFile, forTest } from '../../support/opened.ts'
import { readDecisions } from '../../support/servers/read-decisions.ts'
import { until } from '../../support/until.ts'

/** What the test reads of agentgateway's file. */
interface AgentGateway {
  readonly llm: {
    readonly policies: { readonly remoteRateLimit: { readonly domain: string; readonly descriptors: readonly Told[] } }
    readonly models: readonly { readonly params: { readonly tokenize: boolean } }[]
  }
}
interface Told {
  readonly entries: readonly { readonly key: string }[]
  readonly type: string
}

const readFile = async (path: string) => parse(await snippet(path, []))
const [envoys, agents] = await Promise.all(
  ['envoy-ai-gateway', 'agentgateway'].map((dir) => readFile(`${dir}/policy.yaml`)),
)
// One Weir has both policies: their domains differ.
const policy = {
  version: 1,
  limits: { ...envoys.limits, ...agents.limits },
  routes: [...envoys.routes, ...agents.routes],
}
const stack = await forFile(openIngressStack(policy))
const weir = await stack.start()
const client = await forFile(createRlsClient(weir.grpc))

const look = async (domain: string, ...of: readonly Descriptor['entries'][]) => {
  const descriptors = of.map((entries) => ({ entries, hits_addend: { value: 0 } }))
  const { statuses } = await client.shouldRateLimit({ domain, descriptors })
  return statuses.map((one) => one.limit_remaining)
}

test("Envoy with the file of Envoy AI Gateway charges each response's tokens once, and refuses a tenant without tokens until then", async () => {
  const upstream = await forTest(startModelUpstream())
  const envoy = await forTest(
    startEnvoyWith('envoy-ai-gateway/envoy.yaml', [
      ['port_value: 8082', `port_value: ${weir.grpc.split(':')[1]}`],
      ['port_value: 9000', `port_value: ${new URL(upstream.url).port}`],
      ['timeout: 0.5s', 'timeout: 20s'],
    ]),
  )
  /** Without tokens the model's answer does not report any. */
  const ask = async (tenant: string, tokens?: readonly [input: number, output: number], more = {}) => {
    const [input = 0, output = 0] = tokens ?? []
    const usage = { prompt_tokens: input, completion_tokens: output, total_tokens: input + output }
    const headers = { 'x-tenant-id': tenant, ...(tokens && { 'x-usage': JSON.stringify(usage) }), ...more }
    return (await send(envoy.url, { path: '/v1/chat/completions', method: 'POST', headers })).status
  }
  const name = 'default/envoy-ai-gateway-token-ratelimit/http'
  const route = 'httproute/default/envoy-ai-gateway-token-ratelimit/rule/0/match/0/*'
  const left = (tenant: string) =>
    look(
      name,
      ...[0, 1, 2].map((rule) => [
        { key: route, value: route },
        { key: `rule-${rule}-match-0`, value: tenant },
      ]),
    )
  const leaves = (tenant: string, ...tokens: readonly number[]) =>
    until(async () => (await left(tenant)).join() === tokens.join())

  expect(await ask('ann', [300_000, 50_000])).toBe(200)
  await leaves('ann', 300_000, 150_000, 350_000)
  expect(await ask('ann')).toBe(200)
  expect(await ask('ann', [200_000, 149_999], { 'x-stream': 'yes' })).toBe(200)
  await leaves('ann', 100_000, 1, 1)
  expect(await ask('ann', [90_000, 5])).toBe(200)
  await leaves('ann', 10_000, 0, 0)
  const served = upstream.served()
  expect([await ask('ann', [1, 1]), await ask('ann', [1, 1])]).toEqual([429, 429])
  expect(upstream.served()).toBe(served)
  expect(await ask('ben', [1, 1])).toBe(200)
  await leaves('ben', 599_999, 199_999, 699_998)
  expect(await left('ann')).toEqual([10_000, 0, 0])

  const records = await readDecisions(
    stack.kafka,
    (one) => one.route.includes('envoy-ai-gateway'),
    (all) => all.length >= 4,
  )
  const charges = records.map(({ outcome, cost, reason }) => ({ outcome, cost, reason }))
  expect(charges.toSorted((a, b) => a.cost - b.cost)).toEqual([
    { outcome: 'allow', cost: 2, reason: 'ok' },
    { outcome: 'allow', cost: 90_005, reason: 'limit' },
    { outcome: 'allow', cost: 349_999, reason: 'ok' },
    { outcome: 'allow', cost: 350_000, reason: 'ok' },
  ])
})

const agentGateway: AgentGateway = await readFile('agentgateway/config.yaml')
const { domain, descriptors } = agentGateway.llm.policies.remoteRateLimit

/** What agentgateway sends for a request: its estimate or 0; then the tokens beyond it, unless they were fewer. */
async function useTokens(user: string, used: { readonly input: number; readonly output: number }, estimate = 0) {
  const hits = (value: number): RlsRequest => {
    const ofTokens = descriptors.filter(({ type }) => type === 'tokens')
    const filled = ofTokens.map(({ entries }) => entries.map(({ key }) => ({ key, value: user })))
    return { domain, descriptors: filled.map((entries) => ({ entries, hits_addend: { value } })) }
  }
  const { overall_code: code } = await client.shouldRateLimit(hits(estimate))
  const rest = used.input - estimate + used.output
  if (code === 'OK' && rest >= 0) await client.shouldRateLimit(hits(rest))
  const [left] = await look(domain, [{ key: 'user', value: user }])
  return [code, left]
}

test('agentgateway with its file charges what a response used, and refuses a user without tokens', async () => {
  const used = { input: 50_000, output: 10_000 }
  expect(agentGateway.llm.models.map(({ params }) => params.tokenize)).toEqual([false])
  expect(await useTokens('ann', used)).toEqual(['OK', 40_000])
  expect(await useTokens('ann', { input: 0, output: 0 })).toEqual(['OK', 40_000])
  expect(await useTokens('ann', used)).toEqual(['OK', 0])
  expect(await useTokens('ann', used)).toEqual(['OVER_LIMIT', 0])
  expect(await useTokens('ben', used)).toEqual(['OK', 40_000])
})

test('With estimates of agentgateway, which its file switches off, users lose what was never used', async () => {
  // A difference below 0 is not sent.
  expect(await useTokens('cleo', { input: 30_000, output: 5_000 }, 40_000)).toEqual(['OK', 60_000])
  expect(await useTokens('cleo', { input: 30_000, output: 5_000 }, 20_000)).toEqual(['OK', 25_000])
  // The estimate of a refused request is charged, as envoyproxy/ratelimit does.
  expect(await useTokens('cleo', { input: 30_000, output: 5_000 }, 30_000)).toEqual(['OVER_LIMIT', 0])
})
