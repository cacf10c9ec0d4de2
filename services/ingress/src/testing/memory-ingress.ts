import { createHash } from 'node:crypto'
import { createBoundaryCache } from '@weir/core/calendar/calendar.ts'
import type { Clock } from '@weir/core/clock.ts'
import { createMemoryDecisionLog } from '@weir/decide/testing/memory-decision-log.ts'
import { MemoryIdempotencyRecords } from '@weir/decide/testing/memory-idempotency-records.ts'
import { createAuthenticator } from '@weir/identity/authenticate.ts'
import { requirePolicy } from '@weir/policy/reader/require-policy.ts'
import { MemoryLimitStore } from '@weir/redis/testing/memory-limit-store.ts'
import { createLogger } from '@weir/runtime/logger.ts'
import { buildApps } from '../app.ts'
import { createLivePolicy } from '../policy-view.ts'
import type { Ports } from '../ports.ts'

/** How a policy names a key or a token. */
export const sha256 = (text: string): string => createHash('sha256').update(text).digest('hex')

const stopped: Clock = { nowMs: () => Date.parse('2026-11-21T12:00:10.000Z') }

/** Ports that keep limits and records in memory; the clock stands still unless one is given. */
export function memoryPorts(policyText: string, clock: Clock = stopped) {
  return {
    policy: createLivePolicy(requirePolicy(policyText, 'weir.yaml')),
    authenticator: createAuthenticator({ clock, log: createLogger('test', 'silent') }),
    idempotencyRecords: new MemoryIdempotencyRecords(),
    outcomes: { append: () => true },
    store: new MemoryLimitStore({ clock, periodBoundaries: createBoundaryCache() }),
    log: createMemoryDecisionLog(),
    clock,
  }
}

/** The listeners over such ports, not listening yet. The admin token is `root`. */
export async function openMemoryIngress(policyText: string, more: Partial<Ports> = {}) {
  const ports = memoryPorts(policyText, more.clock)
  const apps = await buildApps({ ...ports, ...more }, createLogger('test', 'silent'), () => sha256('root'))
  return { ...apps, ports, decisions: ports.log, records: ports.log.records }
}
