import { readFile, writeFile } from 'node:fs/promises'
import { createServer, type IncomingHttpHeaders } from 'node:http'
import { sha256 } from '@weir/ingress/testing/memory-ingress.ts'
import { expect, test } from 'vitest'
import { startIngressStack } from '../../support/ingress-stack.ts'
import { listen } from '../../support/listen.ts'
import { forFile } from '../../support/opened.ts'
import { openOtlpReceiver } from '../../support/otlp-receiver.ts'
import { until } from '../../support/until.ts'

/** The headers of each request that came, last first. */
const seen: IncomingHttpHeaders[] = []
const server = createServer((request, response) => {
  seen.unshift(request.headers)
  request.resume()
  response
    .writeHead(200, { 'content-type': 'application/json' })
    .end('{"usage":{"prompt_tokens":3,"completion_tokens":4}}')
})
const port = await listen(server)
await forFile(Promise.resolve({ close: async () => void server.close() }))
const url = `http://127.0.0.1:${port}`

const upstream = (headers: object, more: object = {}) => ({ url, hosts: [], headers, ...more })
const policy = {
  version: 1,
  meters: { chat: { preset: 'openai', maxOutput: 100 } },
  upstreams: {
    openai: upstream({ authorization: { secretEnv: 'SUPPLIER_KEY' }, 'x-team': null, 'x-org': 'weir' }),
    spelled: upstream({ api_key: { secretEnv: 'SUPPLIER_KEY' } }),
    file: upstream({ 'x-api-key': { secretEnv: 'FILE_KEY' } }),
    unset: upstream({ 'x-api-key': { secretEnv: 'NO_SUCH_KEY' } }),
    plain: { url, hosts: ['*'], connections: 4, idle: '5s' },
  },
  routes: [
    { match: 'POST /v1/chat/completions', upstream: 'openai', meter: 'chat' },
    { match: 'GET /v1/models', upstream: 'openai', meter: 'none' },
    { match: 'GET /v1/files', upstream: 'openai' },
    { match: 'GET /spelled', upstream: 'spelled', meter: 'none' },
    { match: 'GET /file', upstream: 'file', meter: 'none' },
    { match: 'GET /unset', upstream: 'unset', meter: 'none' },
  ],
  plans: { free: { limits: [] } },
  subjects: { acme: { plan: 'free', keys: [{ sha256: sha256('virtual-key'), id: 'agent' }] } },
  identity: { trustedProxies: ['127.0.0.1'] },
}

const keyFile = `/tmp/weir-supplier-key-${process.pid}`
await writeFile(keyFile, 'from-a-file\n')
const secret = 'sk-real-0123456789'
const collector = await forFile(openOtlpReceiver())
const traced = { OTEL_EXPORTER_OTLP_ENDPOINT: collector.url, OTEL_TRACES_SAMPLER: 'always_on' }
const secrets = { SUPPLIER_KEY: secret, FILE_KEY_FILE: keyFile }
const { ingress } = await forFile(startIngressStack(policy, { ...secrets, ...traced }))

const ask = async (path: string, init: RequestInit = {}) => {
  const headers = {
    authorization: 'Bearer virtual-key',
    'x-team': 'a',
    'x-forwarded-for': '192.0.2.1',
    via: '1.1 a',
    'anthropic-beta': 'b',
  }
  const answer = await fetch(`${ingress.proxy}${path}`, { ...init, headers })
  const found = (await answer.json()) as { type?: string; error?: { code: string } }
  return {
    status: answer.status,
    type: found.error?.code ?? found.type?.split(/[/#:]/).at(-1),
    text: JSON.stringify(found),
  }
}
const chat = () => ask('/v1/chat/completions', { method: 'POST', body: JSON.stringify({ model: 'm', messages: [] }) })

test('A supplier gets its own credential, and nothing that names the customer', async () => {
  expect((await chat()).status).toBe(200)
  const [headers = {}] = seen
  expect(headers).toMatchObject({
    authorization: `Bearer ${secret}`,
    'x-org': 'weir',
    'anthropic-beta': 'b',
    'accept-encoding': 'identity',
  })
  const telling = Object.keys(headers).filter((name) => /^(?:x-weir|weir|x-forwarded|forwarded|via|x-team)/.test(name))
  expect([telling, JSON.stringify(headers).includes('virtual-key')]).toEqual([[], false])
})

test('No spelling of a header, no other credential and no cookie of the customer passes', async () => {
  const own = { api_key: 'own', 'Api-Key': 'own', 'x-api-key': 'virtual-key', cookie: 'sid=acme' }
  const answer = await fetch(`${ingress.proxy}/spelled`, { headers: { ...own, authorization: 'Bearer virtual-key' } })
  expect(answer.status).toBe(200)
  const sent = JSON.stringify(seen[0])
  expect([seen[0]?.api_key, /own|virtual-key|sid=/.test(sent)]).toEqual([secret, false])
})

test('Other upstreams are told whose request it is, as ever', async () => {
  expect((await ask('/anything')).status).toBe(200)
  expect(seen[0]).toMatchObject({ 'x-weir-subject': 'acme', 'x-weir-key-id': 'agent', 'x-team': 'a' })
})

test('What no route of a supplier meters is refused, unless the route says so', async () => {
  const before = seen.length
  expect(await ask('/v1/files')).toMatchObject({ status: 403, type: 'unmetered_route' })
  expect(seen.length).toBe(before)
  expect((await ask('/v1/models')).status).toBe(200)
})

test('A credential that is replaced in its file is in use a second later, and a missing one is said without its name', async () => {
  expect((await ask('/file')).status).toBe(200)
  expect(seen[0]?.['x-api-key']).toBe('from-a-file')
  await writeFile(keyFile, 'replaced\n')
  await until(async () => (await ask('/file')).status === 200 && seen[0]?.['x-api-key'] === 'replaced')
  const missing = await ask('/unset')
  expect([missing.status, missing.type, missing.text.includes('NO_SUCH_KEY')]).toEqual([
    503,
    'credential-missing',
    false,
  ])
})

test('No output has the credential', async () => {
  const metrics = await (await fetch(`${ingress.ops}/metrics`)).text()
  expect([await readFile(ingress.logFile, 'utf8'), metrics].join()).not.toContain(secret)
})

test('The span of a metered request names its model, and what it used', async () => {
  await chat()
  const named = () => collector.spans.find(({ attributes }) => attributes['gen_ai.request.model'] === 'm')
  await until(() => named() !== undefined)
  expect(named()).toMatchObject({
    name: 'proxy',
    attributes: { 'gen_ai.usage.input_tokens': 3, 'gen_ai.usage.output_tokens': 4 },
  })
})
