import { readEvents, type StreamEvent } from '@weir/cli/console/event-stream.ts'
import { topics } from '@weir/contracts/topics.ts'
import { uuidv7 } from '@weir/core/ids.ts'
import { sha256 } from '@weir/ingress/testing/memory-ingress.ts'
import { createRecordSender } from '@weir/kafka/send-records.ts'
import { waitUntil } from '@weir/runtime/wait-until.ts'
import { afterAll, afterEach, expect, test } from 'vitest'
import { startConsoleOnKafka } from '../../support/console-stack.ts'
import { refusedRecord } from '../../support/decisions/refused-record.ts'
import { createSeededRandom } from '../../support/seeded-random.ts'
import { kafkaOptions } from '../../support/servers/kafka-topics.ts'

const many = Array.from({ length: 25 }, (_, at) => `reader-${at}`)
const token = (name: string, more = {}) => ({ sha256: sha256(`${name}-token`), scopes: ['usage'], ...more })
const keyOf = (name: string) => ({ sha256: sha256(`${name}-key`), id: `${name}-1` })
const policy = {
  version: 1,
  plans: { open: { limits: ['minute'], selfService: true } },
  limits: { minute: { algorithm: 'fixed_window', size: 100, window: '1m' } },
  subjects: { acme: { plan: 'open', keys: [keyOf('acme'), keyOf('ended')] }, bolt: { plan: 'open' } },
  tokens: Object.fromEntries([
    ...[...many, 'going'].map((name) => [name, token(name)]),
    ...['of-acme', 'ended'].map((name) => [name, token(name, { subjects: ['acme'] })]),
  ]),
}

const environment = { WEIR_PORTAL_KEY: 'a key of portals for the tests of streams' }
const { kafka, desk, close } = await startConsoleOnKafka({ policy, environment })
const sender = createRecordSender(kafkaOptions(kafka.address))
afterAll(async () => {
  await sender.close()
  await close()
})

let seq = 0
function record(subject: string, more: object) {
  seq += 1
  const whole = refusedRecord(seq, { subject, key_id: `${subject}-1`, plan: 'open', ...more })
  return { id: whole.id, key: subject, value: JSON.stringify(whole), partition: seq % 6 }
}

/** Sends decisions and resolves to their ids. */
async function decide(count: number, subject = 'acme', more: object = {}): Promise<string[]> {
  const made = Array.from({ length: count }, () => record(subject, more))
  for (let from = 0; from < count; from += 1_000) {
    await sender.send(
      topics.decisions,
      made.slice(from, from + 1_000).map(({ id: _, ...one }) => one),
    )
  }
  return made.map(({ id }) => id)
}

const open: { close: () => void }[] = []
afterEach(() => {
  for (const one of open.splice(0)) one.close()
})
const bearer = (name: string) => ({ authorization: `Bearer ${name}` })
interface Listening {
  readonly status: number
  readonly events: StreamEvent[]
  readonly isOver: () => boolean
  readonly close: () => void
}
async function listen(query = '', headers: Record<string, string> = bearer('test-admin-token')): Promise<Listening> {
  const stop = new AbortController()
  const response = await fetch(`${desk.environment.WEIR_CONSOLE_URL}/v1/decisions/stream?${query}`, {
    headers,
    signal: stop.signal,
  })
  const events: StreamEvent[] = []
  let isOver = false
  const read = async () => {
    for await (const event of readEvents(response.body ?? new ReadableStream<never>())) events.push(event)
  }
  void read()
    .catch(() => undefined)
    .finally(() => {
      isOver = true
    })
  const listening = { status: response.status, events, isOver: () => isOver, close: () => stop.abort() }
  open.push(listening)
  return listening
}
const deadlineMs = 20_000
const until = async (what: () => boolean) => expect(await waitUntil(what, { deadlineMs, everyMs: 10 })).toBe(true)
const untilFollowing = ({ events }: Listening) => until(() => events.some(({ data }) => data === 'following'))
async function follow(query = '', headers?: Record<string, string>): Promise<Listening> {
  const listening = await listen(query, headers)
  await untilFollowing(listening)
  return listening
}
const of = (kind: string, { events }: Listening) => events.filter(({ event }) => event === kind)
const dataOf = (kind: string, listening: Listening) => of(kind, listening).map(({ data }) => JSON.parse(data))
const idsOf = (listening: Listening): string[] => dataOf('decision', listening).map(({ id }) => id)
const lastId = (listening: Listening) => of('decision', listening).at(-1)?.id ?? ''
const counted = (listening: Listening): number =>
  dataOf('sums', listening)
    .flatMap(({ rows }) => rows)
    .reduce((sum, { count }) => sum + count, 0)

test('decisions of all partitions come as they are made, with the sums of each second', async () => {
  const all = await follow()
  const filtered = await follow('subject=bolt&min_cost=6')
  const sums = await follow('of=sums')
  const ids = await decide(12)
  const [large] = await decide(1, 'bolt', { cost: 6, count: 3 })
  const [small] = await decide(1, 'bolt', { outcome: 'allow', reason: 'ok', denied_by: '', limits: [] })
  await decide(1, 'bolt', { cost: 0, count: 0, corrects: uuidv7(1), adjustment: -5, outcome: 'allow' })
  await until(() => counted(all) === 16 && counted(sums) === 16 && counted(filtered) === 3)
  expect(idsOf(all).toSorted()).toEqual([...ids, large, small].toSorted())
  expect([idsOf(filtered), of('decision', sums)]).toEqual([[large], []])
  expect(dataOf('decision', all)[0]).toMatchObject({
    subject: 'acme',
    outcome: 'deny',
    reason: 'limit',
    denied_by: 'minute',
    retry_ms: 19_882,
    cost: 5,
    ip: '',
    limits: [{ name: 'minute', used: 98, by: {} }],
  })
  const rows = dataOf('sums', filtered).flatMap((one) => one.rows)
  expect(rows).toEqual([{ outcome: 'deny', denied_by: 'minute', count: 3, cost: 18 }])
})

test('21: a reader that comes back misses nothing and sees nothing twice', async () => {
  const random = createSeededRandom(7)
  const sent: string[] = []
  const seen: string[] = []
  let reader = await follow()
  for (let round = 0; round < 8; round += 1) {
    sent.push(...(await decide(40)))
    const enough = random.integer(1, 40)
    await until(() => of('decision', reader).length >= enough)
    const cut = of('decision', reader).length
    reader.close()
    await until(() => reader.isOver())
    const events = of('decision', reader)
    expect(events.length).toBeGreaterThanOrEqual(cut)
    seen.push(...idsOf(reader))
    // While no reader listens at all.
    sent.push(...(await decide(40)))
    const last = events.at(-1)?.id ?? ''
    reader = await listen('', { ...bearer('test-admin-token'), 'last-event-id': last })
  }
  await until(() => seen.length + of('decision', reader).length >= sent.length)
  seen.push(...idsOf(reader))
  expect([seen.length, new Set(seen).size]).toEqual([sent.length, sent.length])
  expect(seen.toSorted()).toEqual(sent.toSorted())
  expect(of('gap', reader)).toEqual([])
})

test('a reader that comes back too late is told that decisions are missing', async () => {
  const reader = await follow()
  await decide(1)
  await until(() => of('decision', reader).length === 1)
  const last = lastId(reader)
  await decide(10_000)
  await until(() => counted(reader) === 10_001)
  const late = await listen('', { ...bearer('test-admin-token'), 'last-event-id': last })
  await until(() => of('gap', late).length === 1)
  const wrong = await listen('', { ...bearer('test-admin-token'), 'last-event-id': 'x' })
  await until(() => of('gap', wrong).length === 1)
}, 60_000)

test('beyond 200 a second decisions are counted instead of sent', async () => {
  const reader = await follow()
  await decide(1_000)
  await until(() => counted(reader) === 1_000)
  const dropped = dataOf('dropped', reader).reduce((sum, { count }) => sum + count, 0)
  expect(dropped).toBeGreaterThanOrEqual(200)
  expect(dropped + of('decision', reader).length).toBe(1_000)
})

const portalOf = async (subject: string) =>
  bearer((await desk.ask<{ token: string }>(`POST /v1/subjects/${subject}/portal`, {})).body.token)

test.each([
  ['a portal token', () => portalOf('acme')],
  ['its own key', async () => ({ 'x-api-key': 'acme-key' })],
  ['a token with subjects', async () => bearer('of-acme-token')],
] as const)('20–22: %s of acme’s sees nothing of bolt’s, nor of limits in shadow', async (_, find) => {
  const headers = await find()
  const root = await follow()
  const own = await follow('', headers)
  const sums = await follow('of=sums', headers)
  const [shadowed = ''] = await decide(1, 'acme', { outcome: 'allow', mode: 'shadow', denied_by: 'tried' })
  await decide(3, 'bolt', { denied_by: 'bolts-own' })
  const [refused = ''] = await decide(1)
  await until(() => counted(root) === 5 && counted(own) === 2 && counted(sums) === 2)
  expect(idsOf(own).toSorted()).toEqual([shadowed, refused].toSorted())
  expect(JSON.stringify([own.events, sums.events])).not.toMatch(/bolt|tried|shadow|"limits"/)
  expect(idsOf(sums)).toEqual([])
  const bolts = of('decision', root).find(({ data }) => data.includes('bolt'))?.id ?? ''
  for (const lastOfOthers of [bolts, '9-9']) {
    const resumed = await listen('', { ...headers, 'last-event-id': lastOfOthers })
    await untilFollowing(resumed)
    expect([of('gap', resumed).length, of('decision', resumed)]).toEqual([1, []])
    resumed.close()
  }
  expect((await listen('subject=bolt', headers)).status).toBe(403)
})

test('23: a stream ends within a second after its credential', async () => {
  const other = await follow()
  for (const [ending, headers] of [
    ['DELETE /v1/subjects/acme/portal', await portalOf('acme')],
    ['DELETE /v1/keys/ended-1', { 'x-api-key': 'ended-key' }],
    ['DELETE /v1/tokens/ended', bearer('ended-token')],
    ['DELETE /v1/tokens/going', bearer('going-token')],
  ] as const) {
    const ended = await follow('', headers)
    expect(ended.isOver()).toBe(false)
    expect((await desk.ask(ending)).status).toBe(204)
    const answeredMs = performance.now()
    await until(() => ended.isOver())
    expect(performance.now() - answeredMs).toBeLessThan(1_000)
  }
  expect(other.isOver()).toBe(false)
})

test('a credential has four streams and a console a hundred; the next is refused until one ends', async () => {
  const readers: Listening[] = []
  for (const name of many) {
    for (let one = 0; one < 4; one += 1) readers.push(await listen('', bearer(`${name}-token`)))
    if (readers.length < 100) expect((await listen('', bearer(`${name}-token`))).status).toBe(429)
  }
  expect(readers.map(({ status }) => status)).toEqual(readers.map(() => 200))
  const refused = await fetch(`${desk.environment.WEIR_CONSOLE_URL}/v1/decisions/stream`, {
    headers: bearer('test-admin-token'),
  })
  expect([refused.status, refused.headers.get('retry-after')]).toEqual([429, '5'])
  expect(await refused.json()).toMatchObject({ type: 'urn:weir:problem:too-many-streams' })
  readers[0]?.close()
  expect(await waitUntil(async () => (await listen()).status === 200, { deadlineMs })).toBe(true)
})

test('a reader that does not read is cut off at a megabyte, and holds up no other one', async () => {
  const url = `${desk.environment.WEIR_CONSOLE_URL}/v1/decisions/stream`
  const stop = new AbortController()
  open.push({ close: () => stop.abort() })
  // Nothing takes its body.
  const slow = await fetch(url, { headers: bearer('reader-0-token'), signal: stop.signal })
  expect(slow.status).toBe(200)
  for (let one = 0; one < 3; one += 1) await follow('of=sums', bearer('reader-0-token'))
  expect((await listen('', bearer('reader-0-token'))).status).toBe(429)
  const reader = await follow()
  const isFree = async () => {
    await decide(40, 'acme', { route: 'x'.repeat(20_000) })
    return (await listen('of=sums', bearer('reader-0-token'))).status === 200
  }
  expect(await waitUntil(isFree, { deadlineMs: 60_000, everyMs: 200 })).toBe(true)
  expect(reader.isOver()).toBe(false)
  expect(of('decision', reader).length).toBeGreaterThan(0)
}, 90_000)
