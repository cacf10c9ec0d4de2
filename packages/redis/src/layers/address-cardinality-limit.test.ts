import { createBoundaryCache } from '@weir/core/calendar/calendar.ts'
import { type LimitRequest, unlimitedDecision } from '@weir/core/limits/limit-store.ts'
import { buildLimit, buildLimitRequest, buildScope } from '@weir/core/limits/testing/build-limit.ts'
import { expect, test } from 'vitest'
import { MemoryLimitStore } from '../testing/memory-limit-store.ts'
import { createAddressCardinalityLimit } from './address-cardinality-limit.ts'

/** A request under a limit of 3 a minute per subject and one of 5 per address. */
function from(subject: string, overrides: Partial<LimitRequest> = {}): LimitRequest {
  const limits = [buildLimit({ name: 'own', size: 3 }), buildLimit({ name: 'address', size: 5, by: [{ kind: 'ip' }] })]
  const scope = buildScope({ subject, keyId: '', ip: subject.replace('ip:', '') })
  return buildLimitRequest({ scope, limits, ...overrides })
}

function open(newPerSecondMax: number) {
  let nowMs = 1_790_000_040_000
  const memory = new MemoryLimitStore({ clock: { nowMs: () => nowMs }, periodBoundaries: createBoundaryCache() })
  const scopes = new Set<string>()
  const store = createAddressCardinalityLimit(
    {
      decide(request) {
        scopes.add(`${request.scope.subject} ${request.scope.ip}`)
        return memory.decide(request)
      },
      refund: (request, charge) => memory.refund(request, charge),
    },
    { newPerSecondMax, monotonicMs: () => nowMs },
  )
  return {
    store,
    scopes,
    pass: (ms: number) => {
      nowMs += ms
    },
  }
}

test('a flood of addresses makes no more counts a second than the bound, and the rest share one', async () => {
  const { store, scopes, pass } = open(10)
  for (let at = 0; at < 1_000; at += 1) await store.decide(from(`ip:10.0.0.${at}`))
  expect(scopes.size).toBe(11)
  expect(scopes).toContain('ip:overflow overflow')
  expect(store.overflowed).toBe(990)
  pass(1_000)
  for (let at = 0; at < 1_000; at += 1) await store.decide(from(`ip:10.0.1.${at}`))
  expect(scopes.size).toBe(21)
})

test('addresses that overflow share the limits of one address, and no request is denied for a new address', async () => {
  const { store } = open(1)
  await store.decide(from('ip:10.0.0.1'))
  const decisions = []
  for (let at = 0; at < 5; at += 1) decisions.push(await store.decide(from(`ip:10.0.1.${at}`)))
  expect(decisions.map(({ allowed }) => allowed)).toEqual([true, true, true, false, false])
  expect(decisions.at(-1)).toMatchObject({ reason: 'limit', deniedBy: 'own' })
})

test('an address that is known passes a flood, and keeps its count', async () => {
  const { store, pass } = open(2)
  await store.decide(from('ip:10.0.0.1'))
  for (let second = 0; second < 59; second += 1) {
    pass(1_000)
    for (let at = 0; at < 5; at += 1) await store.decide(from(`ip:10.${second}.1.${at}`))
  }
  const before = store.overflowed
  expect(await store.decide(from('ip:10.0.0.1'))).toMatchObject({ allowed: true })
  expect(store.overflowed).toBe(before)
})

test('subjects with a key are never subject to the cardinality limit', async () => {
  const { store, scopes } = open(1)
  for (let at = 0; at < 5; at += 1) await store.decide(from(`customer-${at}`))
  expect(scopes.size).toBe(5)
})

test('a peek takes nothing from the allowance of new addresses', async () => {
  const { store, scopes } = open(1)
  await store.decide(from('ip:10.0.0.1', { peek: true }))
  await store.decide(from('ip:10.0.0.2'))
  expect([...scopes]).toEqual(['ip:10.0.0.1 10.0.0.1', 'ip:10.0.0.2 10.0.0.2'])
})

test('a refund of an address that overflowed goes to the shared count that was charged', async () => {
  const { store } = open(1)
  await store.decide(from('ip:10.0.0.1'))
  const request = from('ip:10.0.0.2')
  const decision = await store.decide(request)
  expect(await store.refund(request, decision)).toBe(true)
  expect(await store.decide(from('ip:10.0.0.3'))).toMatchObject({ limits: [{ used: 1 }, { used: 1 }] })
})

test('addresses that overflow share one count whatever their headers, and find no idempotency marker of others', async () => {
  const asked: LimitRequest[] = []
  const store = createAddressCardinalityLimit(
    {
      decide: (request) => {
        asked.push(request)
        return Promise.resolve(unlimitedDecision)
      },
      refund: () => Promise.resolve(false),
    },
    { newPerSecondMax: 1, monotonicMs: () => 0 },
  )
  await store.decide(from('ip:10.0.0.9'))
  const request = from('ip:10.0.0.1')
  const scope = { ...request.scope, keyId: 'k', named: new Map([['header:x-tenant', 'any']]) }
  await store.decide({ ...request, scope, idempotency: { key: '1', id: 'id' } })
  const [, shared] = asked
  expect(shared).toMatchObject({ scope: { subject: 'ip:overflow', ip: 'overflow', keyId: '' }, idempotency: undefined })
  expect(shared?.scope.named).toBeUndefined()
})

test('a request with several descriptors that overflows is counted once under each limit, without its own values', async () => {
  const { store } = open(1)
  await store.decide(from('ip:10.0.0.1'))
  const { limits } = from('ip:10.0.0.2')
  const apart = ['a', 'b'].flatMap((value) =>
    limits.map((limit) => ({ ...limit, override: { named: new Map([['attribute:value', value]]), cost: 2 } })),
  )
  const decision = await store.decide(from('ip:10.0.0.2', { limits: apart, hasOverrides: true }))
  expect(decision.limits.map(({ name, used }) => `${name} ${used}`)).toEqual(['own 1', 'address 1'])
})
