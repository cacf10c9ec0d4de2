import { encodeDecisionOpen } from '@weir/contracts/decision.v1.ts'
import { encodeOutcomeOpen } from '@weir/contracts/outcome.v1.ts'
import { uuidv7 } from '@weir/core/ids.ts'
import { createSeededRandom } from '../../support/seeded-random.ts'

/** A record as an ingress hands it to its log: all but the number. */
export interface OpenRecord {
  readonly subject: string
  readonly decision: string
  /** Of allowed decisions. */
  readonly outcome: string | undefined
}

const subjectCount = 1_000
const routes = [
  'POST /v1/search',
  'GET /v1/items/{id}',
  'GET /v1/items',
  'PUT /v1/items/{id}',
  'GET /v1/report',
] as const
const minuteMs = 60_000

/**
 * Records of an API with 1,000 subjects, of which a few make most of the requests, two limits each, one request in
 * twelve refused: the same again each time, but for their ids. `timeOf` tells each one's time by its number.
 */
export function* makeRecords(timeOf: (number: number) => number): Generator<OpenRecord, never> {
  const random = createSeededRandom(1)
  const used = new Map<string, number>()
  for (let at = 0; ; at++) {
    const tsMs = timeOf(at)
    // The product of two even numbers: a tenth of the subjects makes a third of the requests.
    const number = Math.floor(
      (random.integer(0, subjectCount - 1) * random.integer(0, subjectCount - 1)) / subjectCount,
    )
    const subject = `customer-${number}`
    const route = routes[number % 2 === 0 ? random.integer(0, 4) : 0] ?? routes[0]
    const method = route.slice(0, route.indexOf(' '))
    const isDenied = random.oneIn(12)
    const day = (used.get(subject) ?? 0) + (isDenied ? 0 : 1)
    used.set(subject, day)
    const id = uuidv7(tsMs)
    const decision = encodeDecisionOpen({
      id,
      tsMs,
      subject,
      keyId: `key-${number}-${number % 3}`,
      plan: number % 10 === 0 ? 'top' : 'free',
      route,
      method,
      cost: 1,
      count: 1,
      mode: 'enforce',
      deniedBy: isDenied ? 'minute' : '',
      ...(isDenied
        ? { outcome: 'deny', reason: 'limit', charged: 'no' }
        : { outcome: 'allow', reason: 'ok', charged: 'yes' }),
      limits: [
        {
          name: 'minute',
          size: 100,
          used: day % 100,
          remaining: 100 - (day % 100),
          resetMs: minuteMs - (tsMs % minuteMs),
        },
        { name: 'day', size: 100_000, used: day, remaining: 100_000 - day, resetMs: 86_400_000 - (tsMs % 86_400_000) },
      ],
    })
    const outcome = encodeOutcomeOpen({
      id,
      tsMs: tsMs + 12,
      subject,
      route,
      method,
      upstream: 'demo',
      error: '',
      status: random.oneIn(50) ? random.pick([400, 404, 500, 503]) : 200,
      durationMs: random.integer(900, 40_000) / 1_000,
      bytesIn: random.oneIn(3) ? random.integer(100, 2_000) : 0,
      bytesOut: random.integer(150, 9_000),
    })
    yield { subject, decision, outcome: isDenied ? undefined : outcome }
  }
}
