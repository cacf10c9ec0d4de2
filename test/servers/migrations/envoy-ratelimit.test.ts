import { execFile } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { importEnvoy } from '@weir/import/import-envoy.ts'
import { importedJson, importedText } from '@weir/import/imported-policy.ts'
import { waitUntil } from '@weir/runtime/wait-until.ts'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { parse } from 'yaml'
import {
  createRlsClient,
  type Descriptor,
  type RlsClient,
  type RlsRequest,
} from '../../support/envoy-ratelimit/rls-client.ts'
import { startEnvoyWith } from '../../support/gateways/envoy.ts'
import { startPlainUpstream } from '../../support/gateways/plain-upstream.ts'
import { send } from '../../support/gateways/send.ts'
import { openPolicyServers, untilWindowHasRoom } from '../../support/migrations/policy-servers.ts'
import { guideFile } from '../../support/migrations/start-program.ts'
import { forFile, forTest } from '../../support/opened.ts'

/** An example with the answers of `envoyproxy/ratelimit`; the file says how they are written. */
interface Example {
  readonly shows: string
  readonly config: string
  readonly answers: Readonly<Record<string, readonly string[]>>
}

const examples: readonly Example[] = parse(readFileSync(join(import.meta.dirname, 'envoy-examples.yaml'), 'utf8'))
const guideText = (name: string) => readFileSync(guideFile(`envoy-ratelimit/${name}`), 'utf8')

function imported(texts: readonly string[]) {
  const result = importEnvoy(texts.map((text, at) => ({ name: `${at}.yaml`, text })))
  if (result.kind === 'problems') throw new Error(JSON.stringify(result.problems))
  return result
}

const servers = await forFile(openPolicyServers())

/** Descriptors from the form in which the file of examples has them. */
const descriptorsOf = (asked: string): Descriptor[] =>
  asked.split(' + ').map((entries) => ({
    entries: entries.split(' & ').map((entry) => {
      const at = entry.indexOf('=')
      return { key: entry.slice(0, at), value: entry.slice(at + 1) }
    }),
  }))

/** The answers to the same request in turn, as the file of examples writes them. */
async function answersOf(client: RlsClient, times: number, request: RlsRequest): Promise<string[]> {
  const columns = request.descriptors.map((): string[] => [])
  for (let at = 0; at < times; at += 1) {
    const { overall_code: overall, statuses } = await client.shouldRateLimit(request)
    const codes = statuses.map(({ code, current_limit: limit, limit_remaining: left }, number) => {
      const column = columns[number] ?? []
      if (limit !== null && at === 0) column.push(`${limit.requests_per_unit}/${limit.unit}`)
      column.push(code === 'OVER_LIMIT' ? 'over' : limit === null ? 'free' : String(left))
      return code
    })
    expect(overall).toBe(codes.includes('OVER_LIMIT') ? 'OVER_LIMIT' : 'OK')
  }
  return columns.map((column) => column.join(' '))
}

describe('imported examples of envoyproxy/ratelimit', () => {
  let client: RlsClient
  beforeAll(async () => {
    const { policy, notes } = imported(examples.map(({ config }) => config))
    const weir = await servers.startWeir(importedText(policy, notes))
    client = await createRlsClient(weir.grpc)
  })
  afterAll(() => client?.close())
  // No minute ends within a test, nor any longer window: what is over the limit once is over it from then on.
  beforeEach(() => waitUntil(() => Date.now() % 60_000 < 40_000, { deadlineMs: 30_000, everyMs: 200 }))

  test.each(examples)('Example $shows: Weir answers as that server did', async ({ config, answers }) => {
    const { domain } = parse(config)
    for (const [asked, recorded] of Object.entries(answers)) {
      const wanted = recorded.map((column) =>
        column.startsWith('shadow ') ? column.replace(/^shadow \S+ /, '').replaceAll(/\d+/g, 'free') : column,
      )
      const times = wanted[0]?.replace(/^\S+\/\S+ /, '').split(' ').length ?? 0
      const answered = await answersOf(client, times, { domain, descriptors: descriptorsOf(asked) })
      expect([asked, answered]).toEqual([asked, wanted])
    }
  })

  const ask = (times: number, asked: string, hits = 1) =>
    answersOf(client, times, { domain: 'messaging', descriptors: descriptorsOf(asked), hits_addend: hits })

  test('Of several descriptors a refused request charges none, where that server charged all', async () => {
    const both = 'message_type=marketing & to_number=7 + to_number=7'
    // That server: 9/DAY 8 7 6 5 4 3 2 1, then 0.
    expect(await ask(8, both)).toEqual(['5/DAY 4 3 2 1 0 over over over', '9/DAY 8 7 6 5 4 4 4 4'])
    expect(await ask(1, 'to_number=7')).toEqual(['9/DAY 3'])
  })

  test('A refused request of several hits takes none of them, where that server took all', async () => {
    expect(await ask(1, 'to_number=8', 8)).toEqual(['9/DAY 1'])
    expect(await ask(1, 'to_number=8', 2)).toEqual(['9/DAY over'])
    // That server: over.
    expect(await ask(1, 'to_number=8')).toEqual(['9/DAY 0'])
  })

  test('A descriptor that is twice in one request counts once, where that server counted it twice', async () => {
    // That server: 9/DAY 8 and 9/DAY 7.
    expect(await ask(1, 'to_number=9 + to_number=9')).toEqual(['9/DAY 8', '9/DAY 8'])
  })
})

/**
 * Requests through Envoy one after the other, with what `envoyproxy/ratelimit` did on 28 November 2026: how many it
 * admitted, and what its last answer said was left.
 */
const traffic = [
  { user: 'ada', path: '/', times: 12, admitted: 12, left: '8 of 20' },
  { user: 'partner-a', path: '/', times: 45, admitted: 40, left: '0 of 40' },
  { user: 'ada', path: '/export', times: 8, admitted: 5, left: '0 of 5' },
  { user: 'ada', path: '/v1/x', times: 12, admitted: 8, left: '0 of 20' },
  { user: 'monitor', path: '/health', times: 30, admitted: 30 },
  { user: 'scraper', path: '/', times: 3, admitted: 0, left: '0 of 0' },
  { user: 'partner-b', path: '/export', times: 7, admitted: 5, left: '0 of 5' },
  { user: 'partner-b', path: '/', times: 42, admitted: 40, left: '0 of 40' },
  // More than the limit that is in shadow admits.
  { user: 'monitor', path: '/search', times: 14, admitted: 14 },
]

describe('the guide', () => {
  test("The guide's policy is what weir import makes of its configuration", () => {
    expect(parse(guideText('weir.yaml'))).toEqual(importedJson(imported([guideText('ratelimit.yaml')]).policy))
  })

  test.each(['before.yaml', 'both.yaml'])('Envoy accepts %s', async (name) => {
    const file = guideFile(`envoy-ratelimit/${name}`)
    await promisify(execFile)('envoy', ['--mode', 'validate', '-c', file])
  })

  test('Through Envoy with after.yaml Weir answers as recorded, and only admitted requests take from what all share', async () => {
    const upstream = await forTest(startPlainUpstream())
    const weir = await servers.startWeir(guideText('weir.yaml'))
    const envoy = await forTest(
      startEnvoyWith('../../docs/migrations/envoy-ratelimit/after.yaml', [
        ['port_value: 9000', `port_value: ${new URL(upstream.url).port}`],
        ['port_value: 8082', `port_value: ${weir.grpc.split(':').at(-1)}`],
        // Beside all the other tests an answer may take many times as long as it does in life.
        ['timeout: 2s # 20 ms', 'timeout: 20s # 20 ms'],
      ]),
    )
    await untilWindowHasRoom(3_600_000)
    for (const { user, path, times, admitted, left } of traffic) {
      const answers = []
      while (answers.length < times) answers.push(await send(envoy.url, { path, headers: { 'x-user': user } }))
      const isAdmitted = answers.map(({ status }) => status === 200)
      expect([user, path, isAdmitted]).toEqual([user, path, answers.map((_, at) => at < admitted)])
      const { headers = {} } = answers.at(-1) ?? {}
      const [size] = String(headers['x-ratelimit-limit']).split(',')
      if (left !== undefined) expect(`${headers['x-ratelimit-remaining']} of ${size}`).toBe(left)
    }
    // 173 requests, of which 19 were refused, and this one: that server charged the refused ones too, and said 826.
    const { headers } = await send(envoy.url, { path: '/health', headers: { 'x-user': 'monitor' } })
    expect(headers['x-ratelimit-remaining']).toBe('845')
  })
})
