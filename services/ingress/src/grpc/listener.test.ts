import { type Client, credentials, loadPackageDefinition, Metadata, type ServiceError } from '@grpc/grpc-js'
import { loadSync } from '@grpc/proto-loader'
import type { LimitStore } from '@weir/core/limits/limit-store.ts'
import { unavailableDecision } from '@weir/core/limits/unavailable.ts'
import { freePorts } from '@weir/runtime/ports.ts'
import { waitUntil } from '@weir/runtime/wait-until.ts'
import { protoPath as healthProto } from 'grpc-health-check'
import { expect, it, onTestFinished } from 'vitest'
import { memoryPorts, openMemoryIngress, sha256 } from '../testing/memory-ingress.ts'

const policyText = `
version: 1
identity: { anonymous: visitor }
plans: { free: { limits: [minute] }, visitor: { limits: [per-visitor] } }
limits:
  minute: { algorithm: fixed_window, size: 6, window: 1m }
  per-visitor: { algorithm: fixed_window, size: 2, window: 1m }
  per-user: { algorithm: fixed_window, size: 3, window: 1h, by: [attribute:user], applies: all, onUnavailable: deny }
  per-number: { algorithm: fixed_window, size: 5, window: 1d, by: [attribute:to_number] }
  marketing: { algorithm: fixed_window, size: 2, window: 1d, by: [attribute:to_number] }
  shut: { algorithm: fixed_window, size: 0, window: 1s, by: [global] }
  quiet: { algorithm: fixed_window, size: 1, window: 1h, by: [attribute:quiet], mode: shadow }
  wide: { algorithm: fixed_window, size: 9, window: 1h, by: [attribute:to_number], replaces: [per-number] }
routes:
  - { match: "POST /v1/search", cost: 5 }
  - { match: "DESCRIPTOR /messaging/to_number/:number", limits: [per-number] }
  - { match: "DESCRIPTOR /messaging/to_number/666", limits: [shut] }
  - { match: "DESCRIPTOR /messaging/type/marketing/to_number/:number", limits: [marketing] }
  - { match: "DESCRIPTOR /messaging/type/wide/to_number/:number", limits: [wide] }
  - { match: "DESCRIPTOR /messaging/quiet/:who", limits: [quiet] }
  - { match: "DESCRIPTOR /messaging/ldap/:any", limits: [] }
subjects:
  acme: { plan: free, keys: [ { sha256: "${sha256('acme-key')}" } ] }
tokens:
  envoy: { sha256: "${sha256('envoy-token')}", scopes: [check] }
  reader: { sha256: "${sha256('read-token')}", scopes: [read] }
`

const noMetadata: Readonly<Record<string, string>> = {}
const descriptor = (text: string, more: object = {}) => ({
  entries: text.split(' ').map((pair) => ({ key: pair.split('=')[0], value: pair.split('=')[1] })),
  ...more,
})

interface Answer {
  readonly overallCode: string
  readonly statuses: readonly { readonly code: string; readonly limitRemaining: number }[]
  readonly responseHeadersToAdd: readonly { readonly key: string; readonly value: string }[]
  readonly requestHeadersToAdd: readonly { readonly key: string; readonly value: string }[]
  readonly rawBody: Buffer
}

/** Without the limit that every request meets, whatever its domain. */
const messagingOnly = policyText.replace('applies: all, ', '')

type More = { readonly store?: LimitStore; readonly grpcNeedsNoToken?: boolean }
async function open(more: More = {}, policy = policyText) {
  const { api, grpc, records } = await openMemoryIngress(policy, { grpcNeedsNoToken: true, ...more })
  const [port = 0] = await freePorts(1)
  await grpc.listen({ host: '127.0.0.1', port, reusePort: false })
  onTestFinished(() => grpc.close())
  const call = caller(port)
  const ask = (domain: string, descriptors: readonly object[], hitsAddend = 0, metadata = noMetadata) =>
    call<Answer>(
      'envoy.service.ratelimit.v3.RateLimitService',
      'ShouldRateLimit',
      { domain, descriptors, hitsAddend },
      metadata,
    )
  const codes = async (...asked: Parameters<typeof ask>) => {
    const { overallCode, statuses } = await ask(...asked)
    return [overallCode, ...statuses.map(({ code, limitRemaining }) => `${code} ${limitRemaining}`)]
  }
  return { api, grpc, ask, codes, call, records }
}

/** Calls any method of the listener's services, as a client with their proto files does. */
function caller(port: number) {
  const folder = new URL('proto', import.meta.url).pathname
  const options = { longs: Number, enums: String, defaults: true, includeDirs: [folder] }
  const definitions = { ...loadSync('rls.proto', options), ...loadSync(healthProto, options) }
  return function call<T>(service: string, method: string, message: object, metadata = noMetadata): Promise<T> {
    const found = service
      .split('.')
      .reduce<unknown>((at, name) => Reflect.get(Object(at), name), loadPackageDefinition(definitions))
    const stub = new (found as new (...args: unknown[]) => Client)(`127.0.0.1:${port}`, credentials.createInsecure())
    const sent = new Metadata()
    for (const [name, value] of Object.entries(metadata)) sent.set(name, value)
    return new Promise((done, fail) => {
      Reflect.get(stub, method).call(stub, message, sent, (error: ServiceError | null, answer: T) => {
        stub.close()
        if (error === null) done(answer)
        else fail(error)
      })
    })
  }
}

it('a subject named by key or by id has the counts that it has through the check API', async () => {
  const { api, codes, records } = await open()
  expect(await codes('any', [descriptor('key=acme-key')])).toEqual(['OK', 'OK 2'])
  expect(await codes('any', [descriptor('subject=acme user=u1')], 2)).toEqual(['OK', 'OK 1'])
  const headers = { authorization: 'Bearer root' }
  const checked = await api.inject({ method: 'POST', url: '/v1/check', headers, payload: { subject: 'acme' } })
  expect(checked.json().limits[0]).toMatchObject({ name: 'minute', used: 4 })
  expect(records).toMatchObject([{ subject: 'acme', cost: 1 }, { subject: 'acme', cost: 2 }, { subject: 'acme' }])
})

it('method and path find the route and its cost, and a denial carries the headers and the problem of HTTP', async () => {
  const { ask, records } = await open()
  const search = [descriptor('subject=acme method=post path=/v1/search?q=1 user=u')]
  await ask('any', search, 1)
  const refused = await ask('any', search, 6)
  expect(refused.overallCode).toBe('OVER_LIMIT')
  const names = refused.responseHeadersToAdd.map(({ key }) => key)
  expect(names).toEqual(['weir-decision', 'ratelimit-policy', 'ratelimit', 'content-type'])
  expect(JSON.parse(refused.rawBody.toString())).toMatchObject({ status: 403, 'violated-policies': ['per-user'] })
  expect(records).toMatchObject([
    { route: 'POST /v1/search', method: 'POST', outcome: 'allow' },
    { route: 'POST /v1/search', outcome: 'deny', reason: 'cost_exceeds_limit' },
  ])
  expect((await ask('any', [descriptor('subject=acme path=/v1/search method=POST')])).overallCode).toBe('OVER_LIMIT')
})

it('a caller with an address alone has the plan of anonymous callers; one without an address is counted under the domain', async () => {
  const { codes, records } = await open()
  const address = [descriptor('remote_address=192.0.2.7 user=a')]
  expect([await codes('any', address), await codes('any', address), (await codes('any', address))[0]]).toEqual([
    ['OK', 'OK 1'],
    ['OK', 'OK 0'],
    'OVER_LIMIT',
  ])
  await codes('other', [descriptor('user=b')])
  expect(records.map(({ subject }) => subject)).toEqual([...Array(3).fill('ip:192.0.2.7'), '_domain:other'])
})

it('An unknown key or subject is denied, and touches no limit', async () => {
  const { ask, records } = await open()
  for (const text of ['key=nobody', 'subject=nobody', 'key=acme-key subject=other']) {
    const refused = await ask('any', [descriptor(text)])
    expect([refused.overallCode, JSON.parse(refused.rawBody.toString()).status], text).toEqual(['OVER_LIMIT', 401])
  }
  expect(records).toMatchObject([{ subject: '_unauthenticated', reason: 'unauthorized' }])
})

it('In a domain with routes each descriptor is subject to the limits of its route, by its own values', async () => {
  const { codes, records } = await open({}, messagingOnly)
  const one = [descriptor('to_number=1')]
  expect(await codes('messaging', one, 4)).toEqual(['OK', 'OK 1'])
  expect(await codes('messaging', [descriptor('to_number=2')])).toEqual(['OK', 'OK 4'])
  expect(await codes('messaging', [descriptor('to_number=666')])).toEqual(['OVER_LIMIT', 'OVER_LIMIT 0'])
  expect(await codes('messaging', [descriptor('ldap=x')])).toEqual(['OK', 'OK 4294967295'])
  expect(await codes('messaging', [descriptor('key=nobody')])).toEqual(['OK', 'OK 0'])
  expect(records.map(({ route }) => route)).toEqual([
    ...Array(2).fill('DESCRIPTOR /messaging/to_number/:number'),
    'DESCRIPTOR /messaging/to_number/666',
    'DESCRIPTOR /messaging/ldap/:any',
    '*',
  ])
})

it('several descriptors are charged all or none, each its own cost', async () => {
  const { codes, records } = await open({}, messagingOnly)
  const pair = [descriptor('type=marketing to_number=1'), descriptor('to_number=1', { hitsAddend: { value: 3 } })]
  expect(await codes('messaging', pair, 1)).toEqual(['OK', 'OK 1', 'OK 2'])
  expect(await codes('messaging', pair, 1)).toEqual(['OVER_LIMIT', 'OK 1', 'OVER_LIMIT 2'])
  expect(await codes('messaging', [descriptor('type=marketing to_number=1')])).toEqual(['OK', 'OK 0'])
  expect(records.map(({ cost, outcome }) => `${cost} ${outcome}`)).toEqual(['3 allow', '3 deny', '1 allow'])
})

it('two values of one attribute in one request count apart, and the same value once', async () => {
  const { codes } = await open()
  const numbers = ['1', '2', '2'].map((number) => descriptor(`to_number=${number} user=${number}`))
  const routed = await open({}, messagingOnly.replaceAll('to_number/:number', 'to_number/:number/user/:user'))
  expect(await routed.codes('messaging', numbers)).toEqual(['OK', 'OK 4', 'OK 4', 'OK 4'])
  expect(await routed.codes('messaging', numbers.slice(2))).toEqual(['OK', 'OK 3'])
  const users = ['a', 'b'].map((user) => descriptor(`user=${user}`))
  expect(await codes('any', users, 3)).toEqual(['OK', 'OK 0', 'OK 0'])
  expect(await codes('any', [descriptor('user=a')])).toEqual(['OVER_LIMIT', 'OVER_LIMIT 0'])
})

it('a peek at a limit that is used up is over the limit, alone and together with a descriptor that would be charged', async () => {
  const { codes, records } = await open({}, messagingOnly)
  const look = descriptor('to_number=1', { hitsAddend: { value: 0 } })
  const charge = descriptor('type=marketing to_number=1')
  expect(await codes('messaging', [look, charge])).toEqual(['OK', 'OK 5', 'OK 1'])
  await codes('messaging', [descriptor('to_number=1')], 5)
  expect(await codes('messaging', [look])).toEqual(['OVER_LIMIT', 'OVER_LIMIT 0'])
  expect(await codes('messaging', [look, charge])).toEqual(['OVER_LIMIT', 'OVER_LIMIT 0', 'OK 1'])
  expect(await codes('messaging', [charge])).toEqual(['OK', 'OK 0'])
  expect(records.map(({ outcome }) => outcome)).toEqual(['allow', 'allow', 'deny', 'allow'])
})

it('hits_addend 0 asks whether there is capacity, and charges nothing', async () => {
  const { codes } = await open({}, messagingOnly)
  const look = [descriptor('to_number=1', { hitsAddend: { value: 0 } })]
  await codes('messaging', [descriptor('to_number=1')], 2)
  expect([await codes('messaging', look), await codes('messaging', look)]).toEqual([
    ['OK', 'OK 3'],
    ['OK', 'OK 3'],
  ])
})

it('a limit that another one replaces is not charged where both would be', async () => {
  const { codes } = await open({}, messagingOnly)
  const both = [descriptor('to_number=1'), descriptor('type=wide to_number=1')]
  for (const left of [8, 7, 6]) {
    expect(await codes('messaging', both)).toEqual(['OK', 'OK 4294967295', `OK ${left}`])
  }
})

it('a limit in the descriptor itself counts by its domain and entries', async () => {
  const { codes } = await open({}, messagingOnly)
  const limited = [descriptor('user=z', { limit: { requestsPerUnit: 1, unit: 'HOUR' } })]
  expect(await codes('any', limited)).toEqual(['OK', 'OK 0'])
  expect((await codes('any', limited))[0]).toBe('OVER_LIMIT')
  expect((await codes('messaging', limited))[0]).toBe('OK')
})

it('A limit in shadow denies nothing and is not in the answer', async () => {
  const { codes, records } = await open({}, messagingOnly)
  for (const _ of [1, 2]) expect(await codes('messaging', [descriptor('quiet=a')])).toEqual(['OK', 'OK 4294967295'])
  expect(records[1]).toMatchObject({ outcome: 'allow', mode: 'shadow', denied_by: 'quiet' })
})

it('without Redis the limits that say so refuse', async () => {
  const store: LimitStore = { decide: async (request) => unavailableDecision(request, 'no'), refund: async () => false }
  const { ask } = await open({ store })
  const refused = await ask('any', [descriptor('subject=acme'), descriptor('user=a')])
  expect(refused.statuses.map(({ code }) => code)).toEqual(['OVER_LIMIT', 'OVER_LIMIT'])
  expect(JSON.parse(refused.rawBody.toString())).toMatchObject({ status: 503 })
})

it.each([
  ['no domain', '', [descriptor('a=b')], /^domain must have 1 to 128 characters and no/],
  ['a domain of control characters', 'a\nb', [descriptor('a=b')], /^domain must have 1 to 128 characters and no/],
  ['no descriptors', 'd', [], /1 to 32 descriptors, but there are 0/],
  ['no entries', 'd', [{ entries: [] }], /descriptors\[0\] must have 1 to 16 entries/],
  ['an empty key', 'd', [descriptor('=b')], /descriptors\[0\] has an entry with an invalid key/],
  ['no unit', 'd', [descriptor('a=b', { limit: { requestsPerUnit: 1 } })], /limit has no unit/],
])('a request with %s gets an error that names what is wrong', async (_, domain, descriptors, details) => {
  const { ask, records } = await open()
  await expect(ask(domain, descriptors)).rejects.toMatchObject({ code: 3, details: expect.stringMatching(details) })
  expect(records).toEqual([])
})

it('no request of a client causes an error, on which Envoy would let it through', async () => {
  const { ask, records } = await open({}, policyText.replace('size: 3, window: 1h', 'size: 30, window: 1h'))
  const twoMeanings = await ask('any', [descriptor('subject=acme path=/a%2Fb')])
  expect([twoMeanings.overallCode, JSON.parse(twoMeanings.rawBody.toString()).status]).toEqual(['OVER_LIMIT', 400])
  expect((await ask('any', [descriptor(`key=${'k'.repeat(5_000)}`)])).overallCode).toBe('OVER_LIMIT')
  const long = await ask('any', [descriptor(`subject=acme method=post path=/v1/search?${'q'.repeat(5_000)}`)])
  expect([long.overallCode, records.at(-1)?.route, records.at(-1)?.method]).toEqual(['OK', 'POST /v1/search', 'POST'])
  const longest = Array.from({ length: 32 }, () => descriptor(`subject=acme x=${'x'.repeat(61_440)}`))
  expect((await ask('any', longest)).overallCode).toBe('OK')
  await ask('any', [descriptor(`subject=acme user=${'u'.repeat(5_000)} method=${'ŉ'.repeat(100)}`)])
  expect(records.at(-1)?.method).toBe('OTHER')
})

it('a limit that does not apply, or is only tried out, replaces nothing', async () => {
  const replacing = (more: string) => `
version: 1
plans: { free: { limits: [few] } }
limits:
  few: { algorithm: fixed_window, size: 1, window: 1h }
  many: { algorithm: fixed_window, size: 9, window: 1h, ${more}, applies: all, replaces: [few] }
subjects: { acme: { plan: free } }
`
  for (const more of ['by: [ip]', 'mode: shadow']) {
    const { codes } = await open({}, replacing(more))
    const both = [await codes('any', [descriptor('subject=acme')]), await codes('any', [descriptor('subject=acme')])]
    expect(
      both.map(([code]) => code),
      more,
    ).toEqual(['OK', 'OVER_LIMIT'])
  }
  const { codes } = await open({}, replacing('by: [ip]'))
  expect(await codes('any', [descriptor('subject=acme remote_address=192.0.2.1')])).toEqual(['OK', 'OK 8'])
})

it('a descriptor whose entries differ in a name alone has an override of its own, and of two sizes the smaller holds', async () => {
  const { codes } = await open({}, messagingOnly)
  const limited = (text: string, requestsPerUnit: number) =>
    descriptor(text, { limit: { requestsPerUnit, unit: 'HOUR' } })
  const both = [limited('a=x', 9), limited('b=x', 2)]
  expect(await codes('any', both)).toEqual(['OK', 'OK 8', 'OK 1'])
  expect(await codes('any', [limited('c=x', 9), limited('c=x', 2)])).toEqual(['OK', 'OK 1', 'OK 1'])
  const twice = (last: string) => [limited(`k=one k=${last}`, 1)]
  expect([await codes('any', twice('a')), await codes('any', twice('b'))].map(([code]) => code)).toEqual(['OK', 'OK'])
})

it('an IPv6 address is counted by the network of identity.ipv6Prefix', async () => {
  const policy = messagingOnly
    .replaceAll('to_number', 'remote_address')
    .replace('anonymous:', 'ipv6Prefix: 56, anonymous:')
  const { codes } = await open({}, policy)
  const left = async (domain: string, address: string) =>
    (await codes(domain, [descriptor(`remote_address=${address}`)])).at(-1)
  expect([await left('messaging', '2001:db8:0:100::1'), await left('messaging', '2001:db8:0:1ff::2')]).toEqual([
    'OK 4',
    'OK 3',
  ])
  expect(await left('messaging', '2001:db8:0:200::1')).toBe('OK 4')
  expect([await left('any', '2001:db8:0:100::1'), await left('any', '2001:db8:0:1ff::2')]).toEqual(['OK 1', 'OK 0'])
})

it('an IPv6 address is counted by its /64', async () => {
  const { codes } = await open({}, messagingOnly.replaceAll('to_number', 'remote_address'))
  const from = (address: string) => codes('messaging', [descriptor(`remote_address=${address}`)])
  expect([await from('2001:db8::1'), await from('2001:db8::2')]).toEqual([
    ['OK', 'OK 4'],
    ['OK', 'OK 3'],
  ])
})

it('closing waits for calls under way', async () => {
  const { store: inner } = memoryPorts(policyText)
  const held = Promise.withResolvers<void>()
  const asked = Promise.withResolvers<void>()
  const decide: LimitStore['decide'] = (request) => {
    asked.resolve()
    return held.promise.then(() => inner.decide(request))
  }
  const { ask, grpc } = await open({ store: { ...inner, decide, refund: async () => false } })
  const answer = ask('any', [descriptor('subject=acme user=a')])
  await asked.promise
  let isClosed = false
  const closed = grpc.close().then(() => {
    isClosed = true
  })
  const isShut = () =>
    ask('any', [descriptor('user=a')]).then(
      () => false,
      () => true,
    )
  expect(await waitUntil(isShut, { deadlineMs: 5_000 })).toBe(true)
  expect(isClosed).toBe(false)
  held.resolve()
  expect((await answer).overallCode).toBe('OK')
  await closed
})

it('a token is needed where others can call, no key of a subject, and a wrong one is refused everywhere', async () => {
  const { ask } = await open({ grpcNeedsNoToken: false })
  const call = (authorization?: string) =>
    ask('any', [descriptor('user=a')], 0, authorization === undefined ? {} : { authorization })
  await expect(call()).rejects.toMatchObject({ code: 16 })
  await expect(call('Bearer acme-key')).rejects.toMatchObject({ code: 16 })
  await expect(call('Bearer read-token')).rejects.toMatchObject({ code: 7, details: /lacks the scope check/ })
  expect((await call('Bearer envoy-token')).overallCode).toBe('OK')
  expect((await call('bearer root')).overallCode).toBe('OK')
  const open2 = await open()
  await expect(open2.ask('any', [descriptor('user=a')], 0, { authorization: 'Bearer x' })).rejects.toMatchObject({
    code: 16,
  })
})

it('The listener reports its health', async () => {
  const { call } = await open()
  const health = await call<{ status: string }>('grpc.health.v1.Health', 'check', { service: '' })
  expect(health.status).toBe('SERVING')
})

it('a limit that degrades admits and is named to the upstream, and one that delays denies immediately, alone or together', async () => {
  const text = messagingOnly
    .replace(
      'routes:',
      `routes:
  - { match: "DESCRIPTOR /beyond/soft/:who", limits: [soft] }
  - { match: "DESCRIPTOR /beyond/slow/:who", limits: [slow] }`,
    )
    .replace(
      'limits:\n',
      `limits:
  soft: { algorithm: fixed_window, size: 1, window: 1h, by: [attribute:soft], onExceed: degrade }
  slow: { algorithm: fixed_window, size: 1, window: 1h, by: [attribute:slow], onExceed: { delay: 60s } }
`,
    )
  const { ask, records } = await open({}, text)
  const both = [descriptor('soft=a'), descriptor('slow=a')]
  expect((await ask('beyond', [descriptor('soft=a')])).requestHeadersToAdd).toEqual([])
  const degraded = await ask('beyond', both)
  expect(degraded).toMatchObject({ overallCode: 'OK', statuses: [{ code: 'OK' }, { code: 'OK' }] })
  expect(degraded.requestHeadersToAdd).toMatchObject([{ key: 'x-weir-degraded', value: 'soft' }])
  const refused = await ask('beyond', both)
  expect(refused.statuses).toMatchObject([{ code: 'OK' }, { code: 'OVER_LIMIT' }])
  expect(refused.requestHeadersToAdd).toEqual([])
  expect(records.map(({ outcome, reason, denied_by }) => [outcome, reason, denied_by])).toEqual([
    ['allow', 'ok', ''],
    ['allow', 'limit', 'soft'],
    ['deny', 'limit', 'slow'],
  ])
})
