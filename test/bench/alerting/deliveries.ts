import { waitUntil } from '@weir/runtime/wait-until.ts'
import { type AlertingStack, openAlertingStack } from '../../support/alerting/open-alerting.ts'

const deadlineMs = 600_000

/** From a decision to its webhook, in milliseconds. */
export interface AlertDelay {
  readonly p50Ms: number
  readonly p99Ms: number
}

const alertsOfRound = 400
const roundEveryMs = 25

/**
 * Decides for one subject after the other, each of which reaches a threshold, and waits for the webhooks of one
 * endpoint.
 */
export async function measureDelay(stack: AlertingStack, prefix: string): Promise<AlertDelay> {
  const startedAt = performance.now()
  const sentMs = new Map<string, number>()
  for (let at = 0; at < alertsOfRound; at += 1) {
    const subject = `${prefix}-${at}`
    sentMs.set(subject, Date.now())
    await stack.decide([subject], 800)
    // A pace, so that each is an alert of its own.
    const nextAt = startedAt + (at + 1) * roundEveryMs
    await waitUntil(() => performance.now() >= nextAt, { deadlineMs: roundEveryMs, everyMs: 1 })
  }
  const arrived = () =>
    stack.received.flatMap(({ atMs, body }) => {
      const sent = sentMs.get(JSON.parse(body).data.subject)
      return sent === undefined ? [] : [atMs - sent]
    })
  const isThere = () => arrived().length >= alertsOfRound
  if ((await waitUntil(isThere, { deadlineMs })) !== true) throw new Error('not all alerts arrived')
  const sorted = arrived().sort((one, other) => one - other)
  const at = (share: number) => sorted[Math.floor((sorted.length - 1) * share)] ?? Number.NaN
  return { p50Ms: at(0.5), p99Ms: at(0.99) }
}

const endpointCount = 10_000
const alertCount = 5

/**
 * Alerts for 10,000 endpoints, one in twenty of which never answers if `areSomeHanging`. Webhooks a second to the
 * others.
 */
export async function measureMany(areSomeHanging: boolean): Promise<number> {
  const isHanging = (at: number) => areSomeHanging && at % 20 === 0
  const names = Array.from({ length: endpointCount }, (_, at) => `endpoint-${at}`)
  const stack = await openAlertingStack(names)
  try {
    for (const [at, name] of names.entries()) if (isHanging(at)) stack.answer(`/${name}`, () => undefined)
    await stack.start()
    const healthy = new Set(names.filter((_, at) => !isHanging(at)).map((name) => `/${name}`))
    const startedAt = performance.now()
    await stack.decide(
      Array.from({ length: alertCount }, (_, at) => `subject-${at}`),
      800,
    )
    let looked = 0
    let arrived = 0
    const isThere = () => {
      for (; looked < stack.received.length; looked += 1)
        if (healthy.has(stack.received[looked]?.path ?? '')) arrived += 1
      return arrived >= healthy.size * alertCount
    }
    const done = await waitUntil(isThere, { deadlineMs, everyMs: 50 })
    if (done !== true) throw new Error(`only ${arrived} of ${healthy.size * alertCount} webhooks arrived`)
    return arrived / ((performance.now() - startedAt) / 1_000)
  } finally {
    await stack.close()
  }
}
