import { once } from 'node:events'
import { request } from 'node:http'
import { freePorts } from '@weir/runtime/ports.ts'
import { expect, test } from 'vitest'
import { startCountingUpstream } from '../../support/counting-upstream.ts'
import type { RlsRequest } from '../../support/envoy-ratelimit/rls-client.ts'
import { type RecordedAnswer, startRlsRecorder } from '../../support/envoy-ratelimit/rls-recorder.ts'
import { type RateLimit, type Route, streamDoneConfig } from '../../support/envoy-ratelimit/stream-done-config.ts'
import { startEnvoyFrom } from '../../support/gateways/envoy.ts'
import { send } from '../../support/gateways/send.ts'
import { forFile } from '../../support/opened.ts'
import { until } from '../../support/until.ts'

// What Envoy 1.40 sends, as it was observed: `beyond: charge` and docs/grpc.md rely on it.

/** Set by a filter before the rate limit filter, and by one behind it, which a refused request never reaches. */
const metadata = {
  before: { number: 7, zero: 0, text: '8', fraction: 2.7, word: 'many', null: null, minus: -5, huge: 1_000_000_001 },
  after: { number: 9 },
}
const unusable = ['word', 'null', 'minus', 'huge', 'absent']

type Limit = (route: string) => RateLimit
const says = (descriptor_key: string, descriptor_value: string) => ({
  generic_key: { descriptor_key, descriptor_value },
})
const ofHeader = { request_headers: { header_name: 'x-user', descriptor_key: 'is' } }
const onRequest =
  (is: string, hits_addend?: RateLimit['hits_addend']): Limit =>
  (route) => ({
    actions: [says('route', route), is === 'x-user' ? ofHeader : says('is', is)],
    ...(hits_addend && { hits_addend }),
  })
const atEnd =
  (is: string, hits_addend?: RateLimit['hits_addend']): Limit =>
  (route) => ({ ...onRequest(is, hits_addend)(route), apply_on_stream_done: true })
const from = (key: string) => ({ format: `%DYNAMIC_METADATA(${key})%` })
const ofBefore = (keys: readonly string[]) => keys.map((key) => atEnd(key, from(`before:${key}`)))

const both = [
  onRequest('tokens', { number: 0 }),
  onRequest('slot', { number: 1 }),
  ...['before', 'after'].map((name) => atEnd(name, from(`${name}:number`))),
  atEnd('slot', { number: 1, is_negative_hits: true }),
]
const byHeader = [onRequest('x-user', { number: 0 }), atEnd('x-user', from('after:number'))]
const added = { header: { key: 'x-user', value: 'of the API' }, append_action: 'OVERWRITE_IF_EXISTS_OR_ADD' }

type Kept = Omit<Route, 'prefix' | 'limits'> & { readonly limits: readonly Limit[]; readonly answer?: RecordedAnswer }
/** By the name of their route. */
const kept: Readonly<Record<string, Kept>> = {
  both: { limits: [...both, onRequest('plain'), atEnd('plain')] },
  route: { limits: [...both, onRequest('plain'), atEnd('absent', from('before:absent'))], place: 'route' },
  values: { limits: ofBefore(['number', 'zero', 'text', 'fraction', ...unusable]) },
  unusable: { limits: [onRequest('tokens', { number: 0 }), ...ofBefore(unusable)] },
  negative: { limits: [atEnd('all', { ...from('before:number'), is_negative_hits: true })] },
  refused: { limits: both, answer: 'OVER_LIMIT' },
  error: { limits: both, answer: 'error' },
  unanswered: { limits: both, answer: 'nothing' },
  down: { limits: both, cluster: 'nobody' },
  header: { limits: byHeader },
  removed: { limits: byHeader, more: { request_headers_to_remove: ['x-user'] } },
  replaced: { limits: byHeader, more: { request_headers_to_add: [added] } },
  fence: { limits: [onRequest('plain')] },
}
const routes = Object.entries(kept).map(([name, { limits, answer: _, ...route }]): Route => {
  return { ...route, prefix: `/${name}`, limits: limits.map((limit) => limit(name)) }
})

const routeOf = ({ descriptors }: RlsRequest) => descriptors[0]?.entries[0]?.value ?? ''
const api = await forFile(startCountingUpstream())
const rls = await forFile(startRlsRecorder((one) => kept[routeOf(one)]?.answer ?? 'OK'))
const [nobody = 0] = await freePorts(1)
const envoy = await forFile(
  startEnvoyFrom((port) =>
    streamDoneConfig({ port, rls: rls.port, api: Number(new URL(api.url).port), nobody, metadata, routes }),
  ),
)

/** The calls of a route: of each its descriptors, with `+` or `-` and the hits that the descriptor says. */
const told = (name: string) =>
  rls.calls
    .filter((one) => routeOf(one) === name)
    .map(({ descriptors }) =>
      descriptors.map(({ entries, hits_addend: hits, is_negative_hits: isNegative }) => {
        return `${entries[1]?.value} ${isNegative === true ? '-' : '+'}${hits?.value ?? 'unsaid'}`
      }),
    )

/** Envoy sends in order: once it has asked for a later request, it has sent all that it sends for those before. */
async function allTold(name: string) {
  const fences = told('fence').length
  await send(envoy.url, { path: '/fence' })
  await until(() => told('fence').length > fences)
  return told(name)
}

const through = async (name: string) => {
  const { status } = await send(envoy.url, { path: `/${name}`, headers: { 'x-user': 'ann' } })
  return [status, ...(await allTold(name))]
}

/** A request of which the client does not await the end. */
function begin(name: string) {
  const asked = request(`${envoy.url}/${name}`, { headers: { 'x-ms': 'hold' }, agent: false })
  asked.on('error', () => undefined)
  asked.end()
  return asked
}

const asks = ['tokens +0', 'slot +1']
const ends = ['before +7', 'after +9', 'slot -1']

test('Envoy asks once at the request and once at the end, each with its own entries, and never sets hits_addend of the request', async () => {
  expect(await through('both')).toEqual([200, [...asks, 'plain +unsaid'], [...ends, 'plain +unsaid']])
  expect(await through('negative')).toEqual([200, ['all -7']])
  expect(new Set(rls.calls.map((one) => [one.domain, one.hits_addend].join()))).toEqual(new Set(['streams,0']))
})

test("In the rate_limits of a route's own action the addend and its sign are ignored: each descriptor is one hit, twice", async () => {
  const names = (list: readonly string[]) => list.map((one) => one.replace(/ .*|$/, ' +unsaid'))
  expect(await through('route')).toEqual([200, names([...asks, 'plain']), names([...ends, 'absent'])])
})

test('A descriptor whose metadata is missing, null, no number, negative or above 1,000,000,000 is not sent', async () => {
  expect(await through('values')).toEqual([200, ['number +7', 'zero +0', 'text +8', 'fraction +2']])
  expect(await through('unusable')).toEqual([200, ['tokens +0']])
})

test('The end is sent after a refusal, a failed call and a failed API too, with the metadata that was set until then', async () => {
  const early = ['before +7', 'slot -1']
  expect(await through('refused')).toEqual([429, asks, early])
  expect(await through('error')).toEqual([500, asks, early])
  expect(await through('down')).toEqual([503, asks, ends])
})

test('The end is sent when the stream ends and not before, also if the client hangs up', async () => {
  const before = told('both').length
  const since = async () =>
    (await allTold('both')).slice(before).map((one) => one.filter((text) => !/plain/.test(text)))
  const whole = begin('both')
  const [response] = await once(whole, 'response')
  expect(await since()).toEqual([asks])
  api.endHeld()
  await once(response.resume(), 'end')
  expect(await since()).toEqual([asks, ends])
  const cut = begin('both')
  await once(cut, 'response')
  expect(await since()).toEqual([asks, ends, asks])
  cut.destroy()
  await until(() => told('both').length === before + 4)
  expect(await since()).toEqual([asks, ends, asks, ends])
})

test('A client that hangs up before the request is decided has no end: Envoy gives the call up, also one that took a slot', async () => {
  const asked = begin('unanswered')
  await until(() => told('unanswered').length === 1)
  asked.destroy()
  // Sooner than the filter's own timeout.
  await until(() => rls.cancelled.length === 1, 10_000)
  expect(await allTold('unanswered')).toEqual([asks])
})

test('At the end entries are read from the headers that the API got: one that Envoy removed leaves the descriptor out', async () => {
  expect(await through('header')).toEqual([200, ['ann +0'], ['ann +9']])
  expect(await through('removed')).toEqual([200, ['ann +0']])
  expect(await through('replaced')).toEqual([200, ['ann +0'], ['of the API +9']])
})
