import { randomUUID } from 'node:crypto'
import { algorithms } from '@weir/core/limits/limit.ts'
import type { LimitRequest, LimitStore } from '@weir/core/limits/limit-store.ts'
import { buildLimit, buildLimitRequest, buildScope } from '@weir/core/limits/testing/build-limit.ts'
import { describe, expect, test } from 'vitest'

export interface OpenedStore {
  readonly store: LimitStore
  /** The store's clock is the test's. */
  setNowMs(nowMs: number): void
}

const minuteMs = 60_000
const startMs = 1_790_000_000_000 - (1_790_000_000_000 % minuteMs)

/** What every LimitStore must do; held against each of them. */
export function limitStoreContract(name: string, open: () => Promise<OpenedStore>): void {
  describe(`limit store: ${name}`, () => {
    const openAt = async (nowMs: number) => {
      const opened = await open()
      opened.setNowMs(nowMs)
      return { ...opened, scope: buildScope({ subject: `subject-${randomUUID()}` }) }
    }

    test('admits the size exactly, says what is left, and when the next will be admitted', async () => {
      const { store, scope, setNowMs } = await openAt(startMs)
      const request = buildLimitRequest({ scope, limits: [buildLimit({ size: 3 })] })
      const decisions = await Promise.all(Array.from({ length: 5 }, () => store.decide(request)))
      expect(decisions.map(({ allowed }) => allowed)).toEqual([true, true, true, false, false])
      expect(decisions.map(({ limits }) => limits[0]?.remaining)).toEqual([2, 1, 0, 0, 0])
      expect(decisions.at(-1)).toMatchObject({ reason: 'limit', charged: 'no', retryAfterMs: minuteMs })
      setNowMs(startMs + minuteMs - 1)
      expect(await store.decide(request)).toMatchObject({ allowed: false, retryAfterMs: 1 })
      setNowMs(startMs + minuteMs)
      expect(await store.decide(request)).toMatchObject({ allowed: true, charged: 'yes' })
    })

    test('subjects and limits do not share a count; callers of one address do', async () => {
      const { store, scope } = await openAt(startMs)
      const own = buildLimit({ name: 'own', size: 1 })
      const shared = buildLimit({ name: `per-ip-${randomUUID()}`, size: 2, by: [{ kind: 'ip' }] })
      const decide = (subject: string) =>
        store.decide(buildLimitRequest({ scope: { ...scope, subject }, limits: [own, shared] }))
      expect(await decide(`${scope.subject}-a`)).toMatchObject({ allowed: true })
      expect(await decide(`${scope.subject}-b`)).toMatchObject({ allowed: true })
      expect(await decide(`${scope.subject}-c`)).toMatchObject({ allowed: false, deniedBy: shared.name })
    })

    test('a limit that degrades lets everybody pass and names itself, whatever it is counted by, and gives back only its own', async () => {
      const { store, scope } = await openAt(startMs)
      const own = buildLimit({ name: 'own', size: 9 })
      const soft = { size: 1, onExceed: { kind: 'degrade' }, by: [{ kind: 'global' }] } as const
      const shared = buildLimit({ name: `soft-${randomUUID()}`, ...soft })
      const request = buildLimitRequest({ scope, limits: [own, shared] })
      expect(await store.decide(request)).toMatchObject({ allowed: true, reason: 'ok', deniedBy: '' })
      const degraded = await store.decide(request)
      expect(degraded).toMatchObject({ allowed: true, reason: 'limit', deniedBy: shared.name, charged: 'yes' })
      expect(await store.refund(request, degraded)).toBe(true)
      const look = await store.decide({ ...request, peek: true })
      expect(look).toMatchObject({ limits: [{ used: 1 }, { used: 1 }], reason: 'limit', deniedBy: shared.name })
    })

    test("a day begins at the subject's midnight", async () => {
      const { store, scope, setNowMs } = await openAt(Date.UTC(2026, 5, 1, 18, 14))
      const limits = [buildLimit({ size: 1, span: { kind: 'period', unit: 'day' } })]
      const request = buildLimitRequest({ scope, limits, timeZone: 'Asia/Kathmandu' })
      await store.decide(request)
      expect(await store.decide(request)).toMatchObject({ allowed: false, retryAfterMs: minuteMs })
      setNowMs(Date.UTC(2026, 5, 1, 18, 15))
      expect(await store.decide(request)).toMatchObject({ allowed: true, limits: [{ resetMs: 86_400_000 }] })
    })

    test('a request without limits is admitted and charged nowhere', async () => {
      const { store, scope } = await openAt(startMs)
      expect(await store.decide(buildLimitRequest({ scope, limits: [] }))).toMatchObject({
        allowed: true,
        charged: 'no',
      })
    })

    test('a request that no border should have let through fails alone', async () => {
      const { store, scope } = await openAt(startMs)
      const good = buildLimitRequest({ scope })
      const decisions = await Promise.allSettled([
        store.decide({ ...good, cost: -1 }),
        store.decide({ ...good, cost: 0.5 }),
        store.decide({ ...good, limits: Array.from({ length: 17 }, (_, at) => buildLimit({ name: `limit-${at}` })) }),
        store.decide(good),
      ])
      expect(decisions.map(({ status }) => status)).toEqual(['rejected', 'rejected', 'rejected', 'fulfilled'])
    })

    test.each(algorithms)('a refund gives back this decision’s units and no others: %s', async (algorithm) => {
      const { store, scope, setNowMs } = await openAt(startMs + 7)
      const one = buildLimitRequest({ scope, limits: [buildLimit({ name: algorithm, algorithm, size: 9 })], cost: 2 })
      const charged = await store.decide(one)
      setNowMs(startMs + 8)
      await store.decide({ ...one, cost: 4 })
      expect(await store.refund(one, charged)).toBe(true)
      expect(await look(store, one)).toMatchObject({ limits: [{ used: 4, remaining: 5 }] })
    })

    test('a refund gives back on every limit of the request', async () => {
      const { store, scope } = await openAt(startMs)
      const limits = algorithms.map((algorithm) => buildLimit({ name: algorithm, algorithm }))
      const request = buildLimitRequest({ scope, limits, cost: 3 })
      expect(await store.refund(request, await store.decide(request))).toBe(true)
      const { limits: states } = await look(store, request)
      expect(states.map(({ used }) => used)).toEqual(algorithms.map(() => 0))
    })

    test('a subject that exceeds a limit with a block is blocked for its time, also after a refund, and then admitted', async () => {
      const { store, scope, setNowMs } = await openAt(startMs)
      const limits = [buildLimit({ size: 1, span: { kind: 'window', ms: 2_000 }, blockMs: 10_000 })]
      const request = buildLimitRequest({ scope, limits })
      const charged = await store.decide(request)
      expect(await store.decide(request)).toMatchObject({ reason: 'limit', retryAfterMs: 10_000 })
      setNowMs(startMs + 1_500)
      await store.refund(request, charged)
      expect(await store.decide(request)).toMatchObject({ reason: 'blocked', retryAfterMs: 8_500 })
      setNowMs(startMs + 9_999)
      expect(await store.decide(request)).toMatchObject({ reason: 'blocked', retryAfterMs: 1 })
      setNowMs(startMs + 10_000)
      expect(await store.decide(request)).toMatchObject({ allowed: true })
    })

    test('the same idempotency key gets the first answer again and is charged once; another subject’s is another', async () => {
      const { store, scope } = await openAt(startMs)
      const request = (id: string, subject = scope.subject) =>
        buildLimitRequest({
          scope: { ...scope, subject },
          limits: [buildLimit({ size: 2 })],
          idempotency: { key: 'k', id },
        })
      const first = await store.decide(request('first'))
      expect(first).toMatchObject({ allowed: true, charged: 'yes', repeats: '' })
      const again = await store.decide(request('second'))
      expect(again).toMatchObject({ allowed: true, charged: 'no', repeats: 'first', limits: first.limits })
      expect(await store.decide(request('third', `${scope.subject}-b`))).toMatchObject({ charged: 'yes', repeats: '' })
      expect(await look(store, request('none'))).toMatchObject({ limits: [{ used: 1 }] })
    })
  })
}

/** How the limits stand. */
const look = (store: LimitStore, request: LimitRequest) =>
  store.decide({ ...request, peek: true, idempotency: undefined })
