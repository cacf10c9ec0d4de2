/**
 * The doors of the ingress as they are, but with nothing recorded: what deciding alone costs. `WEIR_*` as for the
 * ingress.
 */
import { readFileSync } from 'node:fs'
import { createBoundaryCache } from '@weir/core/calendar/calendar.ts'
import { systemClock } from '@weir/core/clock.ts'
import { MemoryIdempotencyRecords } from '@weir/decide/testing/memory-idempotency-records.ts'
import { createAuthenticator } from '@weir/identity/authenticate.ts'
import { buildApps } from '@weir/ingress/app.ts'
import { ingressVariables } from '@weir/ingress/config.ts'
import { createLivePolicy } from '@weir/ingress/policy-view.ts'
import { requirePolicy } from '@weir/policy/reader/require-policy.ts'
import { connectRedis } from '@weir/redis/connect.ts'
import { RedisLimitStore } from '@weir/redis/redis-limit-store.ts'
import { createLogger } from '@weir/runtime/logger.ts'
import { readConfig } from '@weir/runtime/read-config.ts'

const config = readConfig(ingressVariables, process.env)
const logger = createLogger('check-unrecorded', config.logLevel)
const policy = requirePolicy(readFileSync(config.policyFile, 'utf8'), config.policyFile)
const redis = connectRedis(config.redisUrl, {
  role: 'limiter',
  onError: (error) => logger.warn({ err: error }, 'redis'),
})
const store = new RedisLimitStore({
  redis,
  clock: systemClock,
  periodBoundaries: createBoundaryCache(),
  deadlineMs: config.decisionDeadlineMs,
})
const isThere = () => Promise.resolve(true)
const log = {
  append: () => true,
  openCoalesced: () => ({ add: () => true, finallyWritten: isThere }),
  writtenInTime: isThere,
  finallyWritten: isThere,
}
const { api, proxy } = await buildApps(
  {
    policy: createLivePolicy(policy),
    authenticator: createAuthenticator({ clock: systemClock, log: logger }),
    store,
    log,
    idempotencyRecords: new MemoryIdempotencyRecords(),
    outcomes: log,
    clock: systemClock,
  },
  logger,
  () => config.adminTokenSha256.text,
)
await api.listen({ port: config.apiPort, host: config.apiHost })
await proxy.listen({ port: config.ingressPort, host: config.ingressHost })
