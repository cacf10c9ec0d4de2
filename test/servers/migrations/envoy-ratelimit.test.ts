import { readFileSync } from 'node:fs'
import { resolve } from 'node:path'
import { importEnvoy, importedJson, importedText, inShadow } from '@weir/import/import-envoy.ts'
import { waitUntil } from '@weir/runtime/wait-until.ts'
import { afterAll, beforeAll, beforeEach, expect, inject, onTestFinished, test } from 'vitest'
import { parse } from 'yaml'
import { type ReferenceServer, startReferenceServer } from '../../support/envoy-ratelimit/reference-server.ts'
import { startWeirWithPolicy, type WeirWithPolicy } from '../../support/envoy-ratelimit/weir-with-policy.ts'
import { startEnvoyWith } from '../../support/gateways/envoy.ts'
import { type PlainUpstream, startPlainUpstream } from '../../support/gateways/plain-upstream.ts'
import { send } from '../../support/gateways/send.ts'
import { kafkaOptions } from '../../support/servers/kafka-topics.ts'
import { type ReadRecord, readTopic } from '../../support/servers/read-topic.ts'

const guide = 'docs/migrations/envoy-ratelimit'
const textOf = (name: string) => readFileSync(resolve(import.meta.dirname, '../../..', guide, name), 'utf8')

/** What users ask for, one after the other. */
const traffic: readonly { readonly user: string; readonly path: string; readonly times: number }[] = [
  { user: 'ada', path: '/', times: 12 },
  { user: 'partner-a', path: '/', times: 45 },
  { user: 'ada', path: '/export', times: 8 },
  { user: 'ada', path: '/v1/x', times: 12 },
  { user: 'monitor', path: '/health', times: 30 },
  { user: 'scraper', path: '/', times: 3 },
  { user: 'partner-b', path: '/export', times: 7 },
  { user: 'partner-b', path: '/', times: 42 },
]
/** More than the limit that is in shadow admits. */
const searches = { user: 'monitor', path: '/search', times: 14 }

let upstream: PlainUpstream
let reference: ReferenceServer

beforeAll(async () => {
  upstream = await startPlainUpstream()
  reference = await startReferenceServer({
    ...{ redisUrl: inject('redisUrl'), prefix: `migration-${process.pid}-` },
    files: { 'ratelimit.yaml': textOf('ratelimit.yaml') },
  })
}, 900_000)
afterAll(async () => {
  await reference?.close()
  await upstream?.close()
})
// No hour ends within a test, which may take minutes beside others: what is refused once is refused from then on.
beforeEach(async () => {
  const hasRoom = () => Date.now() % 3_600_000 < 3_420_000
  expect(await waitUntil(hasRoom, { deadlineMs: 190_000, everyMs: 500 })).toBe(true)
}, 200_000)

const portOf = (address: string) => address.split(':').at(-1) ?? ''

/** Envoy with one of the guide's files, in front of the upstream. */
async function envoyWith(file: string, weir: WeirWithPolicy | undefined) {
  const ports = [
    ['port_value: 9000', new URL(upstream.url).port],
    ...(file === 'after.yaml' ? [] : [['port_value: 8081', portOf(reference.grpc)]]),
    ...(weir === undefined ? [] : [['port_value: 8082', portOf(weir.grpc)]]),
  ].map(([old = '', port = '']) => [old, `port_value: ${port}`] as const)
  // Beside all the other tests an answer may take many times as long as it does in life.
  const patience = [' # 20 ms', ...(file === 'both.yaml' ? [' # of Weir'] : [])].map(
    (which) => [`timeout: 2s${which}`, `timeout: 20s${which}`] as const,
  )
  const gateway = await startEnvoyWith(`../../${guide}/${file}`, [...ports, ...patience])
  onTestFinished(() => gateway.close())
  return gateway.url
}

async function weirWith(policy: string): Promise<WeirWithPolicy> {
  const weir = await startWeirWithPolicy(policy, inject('redisUrl'))
  onTestFinished(() => weir.close())
  return weir
}

/** The status of each answer, with what is left by Envoy's own headers. `as` makes other users of the same kinds. */
async function answersTo(url: string, asked: typeof traffic, as: string) {
  const answers: string[] = []
  for (const { user, path, times } of asked) {
    for (let n = 0; n < times; n += 1) {
      const isNamed = ['monitor', 'scraper'].includes(user)
      const { status, headers } = await send(url, { path, headers: { 'x-user': isNamed ? user : `${user}${as}` } })
      const [size] = String(headers['x-ratelimit-limit']).split(',')
      // What all share is another number after refusals, and Weir mentions no limit in shadow.
      const left = size === '1000' || path === '/search' ? '' : `${headers['x-ratelimit-remaining']} of ${size}`
      answers.push(`${user} ${path} ${status}: ${left}`)
    }
  }
  return answers
}

const statusesIn = (answers: readonly string[]) => {
  const counts = new Map<string, number>()
  for (const answer of answers) {
    const [what = ''] = answer.split(':')
    counts.set(what, (counts.get(what) ?? 0) + 1)
  }
  return Object.fromEntries(counts)
}

const isAdmitted = (answer: string) => answer.includes(' 200:')

/** Of what all users share, as one more request is told that meets no other limit. */
async function leftOfShared(url: string) {
  const { headers } = await send(url, { path: '/health', headers: { 'x-user': 'monitor' } })
  return headers['x-ratelimit-remaining']
}

/** Each process declares itself among the decisions too. */
const decisionsIn = (records: readonly ReadRecord[]) =>
  records
    .map(({ value }): Record<string, unknown> => JSON.parse(value?.toString() ?? '{}'))
    .filter(({ outcome }) => outcome !== undefined)

const imported = () => {
  const result = importEnvoy([{ name: `${guide}/ratelimit.yaml`, text: textOf('ratelimit.yaml') }])
  if (result.kind === 'problems') throw new Error(JSON.stringify(result.problems))
  return result
}

test("the guide's policy is what weir import makes of its configuration", () => {
  expect(parse(textOf('weir.yaml'))).toEqual(importedJson(imported().policy))
})

test('before and after, the same traffic through Envoy has the same answers and the same is left', async () => {
  const all = [...traffic, searches]
  const [old, weir] = [await envoyWith('before.yaml', undefined), await weirWith(textOf('weir.yaml'))]
  const before = await answersTo(old, all, '-1')
  const next = await envoyWith('after.yaml', weir)
  const after = await answersTo(next, all, '-1')
  expect(after).toEqual(before)
  expect(statusesIn(after)).toEqual({
    ...{ 'ada / 200': 12, 'ada /export 200': 5, 'ada /export 429': 3, 'ada /v1/x 200': 8, 'ada /v1/x 429': 4 },
    ...{ 'partner-a / 200': 40, 'partner-a / 429': 5, 'monitor /health 200': 30, 'scraper / 429': 3 },
    ...{ 'partner-b /export 200': 5, 'partner-b /export 429': 2, 'partner-b / 200': 40, 'partner-b / 429': 2 },
    'monitor /search 200': 14,
  })
  // Here they differ: what is refused by one limit has taken nothing from the others.
  expect(await leftOfShared(old)).toBe(String(1_000 - after.length - 1))
  expect(await leftOfShared(next)).toBe(String(1_000 - after.filter(isAdmitted).length - 1))
})

test('side by side Weir changes no answer, and records a refusal for each that the other gives', async () => {
  const { policy, notes } = imported()
  const weir = await weirWith(importedText(inShadow(policy), notes))
  const answers = await answersTo(await envoyWith('both.yaml', weir), traffic, '-2')
  const refused = answers.filter((answer) => !isAdmitted(answer)).length
  expect(refused).toBe(19)
  const records = await readTopic(kafkaOptions(weir.brokers), 'weir.decisions.v1', (read) => {
    return decisionsIn(read).length >= answers.length
  })
  const decisions = decisionsIn(records)
  expect(decisions).toHaveLength(answers.length)
  expect(decisions.filter(({ outcome }) => outcome === 'allow')).toHaveLength(answers.length)
  expect(decisions.filter(({ mode, reason }) => mode === 'shadow' && reason === 'limit')).toHaveLength(refused)
})
