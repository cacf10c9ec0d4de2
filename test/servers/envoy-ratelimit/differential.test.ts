import { importEnvoy, importedText } from '@weir/import/import-envoy.ts'
import { waitUntil } from '@weir/runtime/wait-until.ts'
import { afterAll, beforeAll, beforeEach, describe, expect, inject, test } from 'vitest'
import {
  type Asked,
  beyondDocumented,
  descriptor,
  documented,
  type Example,
} from '../../support/envoy-ratelimit/examples.ts'
import { type ReferenceServer, startReferenceServer } from '../../support/envoy-ratelimit/reference-server.ts'
import {
  createRlsClient,
  type RlsClient,
  type RlsRequest,
  type RlsResponse,
} from '../../support/envoy-ratelimit/rls-client.ts'
import { startWeirWithPolicy } from '../../support/envoy-ratelimit/weir-with-policy.ts'
import type { RunningIngress } from '../../support/start-ingress.ts'

const examples = [...documented, beyondDocumented]
const files = examples.map(({ config }, at) => ({ name: `${at}.yaml`, text: config }))

let reference: ReferenceServer
let weir: RunningIngress
let theirs: RlsClient
let ours: RlsClient

beforeAll(async () => {
  const result = importEnvoy(files)
  if (result.kind === 'problems') throw new Error(JSON.stringify(result.problems))
  const redisUrl = inject('redisUrl')
  reference = await startReferenceServer({
    ...{ redisUrl, prefix: `reference-${process.pid}-` },
    files: Object.fromEntries(files.map(({ name, text }) => [name, text])),
  })
  weir = await startWeirWithPolicy(importedText(result.policy, result.notes), redisUrl)
  theirs = await createRlsClient(reference.grpc)
  ours = await createRlsClient(weir.grpc)
}, 900_000)
afterAll(async () => {
  theirs?.close()
  ours?.close()
  await weir?.close()
  await reference?.close()
})

// No minute ends within a test, nor any longer window: what is over the limit once is over it from then on.
beforeEach(() => waitUntil(() => Date.now() % 60_000 < 40_000, { deadlineMs: 30_000, everyMs: 200 }))

/** What Envoy goes by, and what it shows of it: `OK, 2 left of 3 per MINUTE` for a descriptor. */
const gist = ({ overall_code, statuses }: RlsResponse) => ({
  overall_code,
  statuses: statuses.map(({ code, current_limit: limit, limit_remaining: left }) =>
    limit === null ? code : `${code}, ${left} left of ${limit.requests_per_unit} per ${limit.unit}`,
  ),
})

async function gists(client: RlsClient, { domain }: Example, { descriptors, times }: Asked) {
  const found: ReturnType<typeof gist>[] = []
  while (found.length < times) found.push(gist(await client.shouldRateLimit({ domain, descriptors })))
  return found
}

const codesOf = (found: readonly { readonly overall_code: string }[]) => found.map((one) => one.overall_code)
const admittedFirst = ({ times, admitted }: Asked) =>
  Array.from({ length: times }, (_, at) => (at < admitted ? 'OK' : 'OVER_LIMIT'))

describe.each(examples)('example $shows', (example) => {
  test('imported, it decides as the server that it comes from, and as its documentation says', async () => {
    for (const asked of example.asked) {
      const name = JSON.stringify(asked.descriptors)
      const [before, after] = [await gists(theirs, example, asked), await gists(ours, example, asked)]
      expect([name, codesOf(before)]).toEqual([name, admittedFirst(asked)])
      const shown = asked.isShadow ? before.map((one) => ({ ...one, statuses: ['OK'] })) : before
      expect([name, after]).toEqual([name, shown])
    }
  })
})

describe('Weir is stricter: a request that is refused charges nothing', () => {
  const to = (number: string) => descriptor(`to_number=${number}`)
  const marketing = (number: string) => descriptor('message_type=marketing', `to_number=${number}`)
  const askBoth = async (request: Omit<RlsRequest, 'domain'>) => ({
    before: gist(await theirs.shouldRateLimit({ domain: 'messaging', ...request })),
    after: gist(await ours.shouldRateLimit({ domain: 'messaging', ...request })),
  })

  test('of several descriptors all are charged or none', async () => {
    const descriptors = [marketing('7'), to('7')]
    for (let at = 1; at <= 5; at += 1) {
      const { before, after } = await askBoth({ descriptors })
      expect([at, before.overall_code]).toEqual([at, 'OK'])
      expect([at, after]).toEqual([at, before])
    }
    for (const theirsLeft of [3, 2, 1]) {
      const { before, after } = await askBoth({ descriptors })
      expect(before.statuses).toEqual(['OVER_LIMIT, 0 left of 5 per DAY', `OK, ${theirsLeft} left of 9 per DAY`])
      expect(after.statuses).toEqual(['OVER_LIMIT, 0 left of 5 per DAY', 'OK, 4 left of 9 per DAY'])
      expect([before.overall_code, after.overall_code]).toEqual(['OVER_LIMIT', 'OVER_LIMIT'])
    }
    const { before, after } = await askBoth({ descriptors: [to('7')] })
    expect([before.statuses, after.statuses]).toEqual([['OK, 0 left of 9 per DAY'], ['OK, 3 left of 9 per DAY']])
  })

  test('a request of more hits than are left takes none of them', async () => {
    const descriptors = [to('8')]
    const first = await askBoth({ descriptors, hits_addend: 8 })
    expect([first.before.statuses, first.after]).toEqual([['OK, 1 left of 9 per DAY'], first.before])
    const second = await askBoth({ descriptors, hits_addend: 2 })
    expect([second.before.overall_code, second.after.overall_code]).toEqual(['OVER_LIMIT', 'OVER_LIMIT'])
    const third = await askBoth({ descriptors })
    expect([third.before.overall_code, third.after.overall_code]).toEqual(['OVER_LIMIT', 'OK'])
  })

  test('a descriptor that is there twice in one request counts once', async () => {
    const { before, after } = await askBoth({ descriptors: [to('9'), to('9')] })
    expect(before.statuses).toEqual(['OK, 8 left of 9 per DAY', 'OK, 7 left of 9 per DAY'])
    expect(after.statuses).toEqual(['OK, 8 left of 9 per DAY', 'OK, 8 left of 9 per DAY'])
  })
})
