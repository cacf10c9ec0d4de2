import { createServer } from 'node:http'
import { createClient, refusalOf } from '@weir/client'
import { systemClock } from '@weir/core/clock.ts'
import type { Reason } from '@weir/core/limits/decision.ts'
import { decision, limit, state } from '@weir/core/limits/testing/build-decision.ts'
import { denialProblem, setDecisionHeaders } from '@weir/ingress/http/decision-reply.ts'
import { decisionText } from '@weir/ingress/routes/check.ts'
import { expect, test } from 'vitest'
import { listenForTest } from '../../support/listen.ts'
import { forTest } from '../../support/opened.ts'

const refused = (reason: Reason, retryAfterMs: number, deniedBy = 'minute') => ({
  id: '01234567-89ab-7cde-8123-456789abcdef',
  decision: decision({
    allowed: false,
    reason,
    deniedBy,
    retryAfterMs,
    charged: 'no',
    limits: [state({ remaining: 0 })],
  }),
  limits: [limit({})],
})

test.each([
  refused('limit', 1_200),
  refused('limit', 0),
  refused('blocked', 60_000),
  refused('unavailable', 1_000),
  refused('unavailable', 1_000, ''),
  refused('cost_exceeds_limit', 0),
  refused('limit', 5_000, '_markers'),
])('a refusal is answered in the words and headers of the proxy: %j', async (recorded) => {
  const headers: Record<string, string> = {}
  const target = {
    header(name: string, value: string | number) {
      headers[name] = String(value)
    },
  }
  setDecisionHeaders(target, recorded, { clock: systemClock })
  const api = createServer((_, response) => response.writeHead(200, headers).end(decisionText(recorded)))
  const client = await forTest(createClient({ url: `http://127.0.0.1:${await listenForTest(api)}`, key: 'k' }))
  const refusal = refusalOf(await client.check())
  const { 'content-type': type, 'cache-control': cache, ...others } = refusal.headers
  const proxied = denialProblem(target, recorded)
  expect([refusal.problem, others]).toEqual([proxied, headers])
  expect([refusal.status, type, cache]).toEqual([proxied.status, 'application/problem+json', 'no-store'])
})
