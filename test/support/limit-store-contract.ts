import { randomUUID } from 'node:crypto'
import type { LimitStore } from '@weir/core/limits/limit-store.ts'
import { describe, expect, test } from 'vitest'
import { buildLimit, buildLimitRequest, buildScope } from './builders/limit.ts'

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

    test('refuses a request that fits one limit but not the other, and charges neither', async () => {
      const { store, scope } = await openAt(startMs)
      const limits = [buildLimit({ name: 'wide', size: 9 }), buildLimit({ name: 'narrow', size: 1 })]
      await store.decide(buildLimitRequest({ scope, limits }))
      const refused = await store.decide(buildLimitRequest({ scope, limits }))
      expect(refused).toMatchObject({ allowed: false, deniedBy: 'narrow', limits: [{ used: 1 }, { used: 1 }] })
    })

    test('names the limit that a cost can never fit, and no time to wait', async () => {
      const { store, scope } = await openAt(startMs)
      const limits = [buildLimit({ name: 'wide', size: 9 }), buildLimit({ name: 'narrow', size: 1 })]
      const refused = await store.decide(buildLimitRequest({ scope, limits, cost: 5 }))
      expect(refused).toMatchObject({ reason: 'cost_exceeds_limit', deniedBy: 'narrow', retryAfterMs: 0 })
    })

    test('looking takes nothing', async () => {
      const { store, scope } = await openAt(startMs)
      const request = buildLimitRequest({ scope, limits: [buildLimit({ size: 1 })] })
      expect(await store.decide({ ...request, peek: true })).toMatchObject({ allowed: true, charged: 'no' })
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
  })
}
