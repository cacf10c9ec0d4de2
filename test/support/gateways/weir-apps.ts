import { createHash } from 'node:crypto'
import type { AddressInfo } from 'node:net'
import { createBoundaryCache } from '@weir/core/calendar/calendar.ts'
import { systemClock } from '@weir/core/clock.ts'
import { createAuthenticator } from '@weir/identity/authenticate.ts'
import { buildApps } from '@weir/ingress/app.ts'
import { createLivePolicy } from '@weir/ingress/policy-view.ts'
import { createMemoryDecisionLog, type MemoryDecisionLog } from '@weir/ingress/testing/memory-decision-log.ts'
import { MemoryIdempotencyRecords } from '@weir/ingress/testing/memory-idempotency-records.ts'
import { requirePolicy } from '@weir/policy/reader/require-policy.ts'
import { MemoryLimitStore } from '@weir/redis/testing/memory-limit-store.ts'
import { createLogger } from '@weir/runtime/logger.ts'
import { freePorts } from '@weir/runtime/ports.ts'

/** Weir's three listeners on real sockets in this process, with limits and records in memory, to be read by a test. */
export interface WeirApps {
  readonly proxy: string
  readonly api: string
  /** `host:port`. */
  readonly grpc: string
  readonly records: MemoryDecisionLog['records']
  close(): Promise<void>
}

export const sha256 = (text: string) => createHash('sha256').update(text).digest('hex')

/** `log` is asked instead of the memory's where a test wants records that are not kept. */
export async function openWeirApps(
  policyText: string,
  log: MemoryDecisionLog = createMemoryDecisionLog(),
): Promise<WeirApps> {
  const logger = createLogger('test', 'silent')
  const clock = systemClock
  const authenticator = createAuthenticator({ clock, log: logger })
  const ports = {
    ...{ policy: createLivePolicy(requirePolicy(policyText, 'weir.yaml')), authenticator, log, clock },
    outcomes: { append: () => true },
    grpcNeedsNoToken: true,
    idempotencyRecords: new MemoryIdempotencyRecords(),
    store: new MemoryLimitStore({ clock, periodBoundaries: createBoundaryCache() }),
  }
  const apps = await buildApps(ports, logger, () => '')
  const [grpcPort = 0] = await freePorts(1)
  await apps.grpc.listen({ host: '127.0.0.1', port: grpcPort, reusePort: false })
  for (const app of [apps.proxy, apps.api]) await app.listen({ host: '127.0.0.1', port: 0 })
  const originOf = ({ server }: (typeof apps)['api']) => `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  return {
    ...{ proxy: originOf(apps.proxy), api: originOf(apps.api), grpc: `127.0.0.1:${grpcPort}`, records: log.records },
    async close() {
      await apps.grpc.close()
      await apps.close()
      await authenticator.close()
    },
  }
}
