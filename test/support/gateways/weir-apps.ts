import type { AddressInfo } from 'node:net'
import { systemClock } from '@weir/core/clock.ts'
import type { SlotStore } from '@weir/core/limits/limit-store.ts'
import { createMemoryDecisionLog, type MemoryDecisionLog } from '@weir/decide/testing/memory-decision-log.ts'
import { openMemoryIngress } from '@weir/ingress/testing/memory-ingress.ts'
import { freePorts } from '@weir/runtime/ports.ts'

/** Weir's three listeners on real sockets in this process, with limits and records in memory, to be read by a test. */
export type WeirApps = Awaited<ReturnType<typeof openWeirApps>>

/**
 * `log` is asked instead of the memory's where a test wants records that are not kept; `slots` are told what is given
 * back of requests in flight.
 */
export async function openWeirApps(
  policyText: string,
  log: MemoryDecisionLog = createMemoryDecisionLog(),
  slots?: SlotStore,
) {
  const settings = { log, clock: systemClock, grpcNeedsNoToken: true }
  const apps = await openMemoryIngress(policyText, { ...settings, ...(slots && { slots }) })
  const [grpcPort = 0] = await freePorts(1)
  await apps.grpc.listen({ host: '127.0.0.1', port: grpcPort, reusePort: false })
  for (const app of [apps.proxy, apps.api]) await app.listen({ host: '127.0.0.1', port: 0 })
  const originOf = ({ server }: (typeof apps)['api']) => `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  return {
    proxy: originOf(apps.proxy),
    api: originOf(apps.api),
    /** `host:port`. */
    grpc: `127.0.0.1:${grpcPort}`,
    records: log.records,
    async close() {
      await apps.grpc.close()
      await apps.close()
      await apps.ports.authenticator.close()
    },
  }
}
