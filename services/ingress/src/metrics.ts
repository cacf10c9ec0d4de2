import type { Authenticator } from '@weir/identity/authenticate.ts'
import type { RedisIdempotencyRecords } from '@weir/redis/idempotency-records.ts'
import type { LayeredStore } from '@weir/redis/layers/all-layers.ts'
import type { ProcessCount } from '@weir/redis/layers/process-count.ts'
import type { RedisLimitStore } from '@weir/redis/redis-limit-store.ts'
import { registerScraped } from '@weir/runtime/scraped-metrics.ts'
import type { Registry } from 'prom-client'
import type { Apps } from './app.ts'

/** What the ingress counts. docs/monitoring.md says what each is for. */
export function registerMetrics(
  register: Registry,
  parts: {
    readonly store: RedisLimitStore
    readonly layers: LayeredStore
    readonly processes: ProcessCount
    readonly authenticator: Authenticator
  },
): void {
  const { store, layers, processes, authenticator } = parts
  registerIdentity(register, authenticator)
  registerScraped(register, {
    weir_redis_call_duration_seconds: {
      help: 'Script calls, sent until replied',
      histogram: store.counters.callDuration,
    },
    weir_redis_call_decisions: { help: 'Requests in a script call', histogram: store.counters.callSize },
    weir_redis_servers_gone: { help: 'Redis servers that are not asked', read: () => store.serversDown },
    weir_redis_breaker_opened_total: {
      help: 'Times that one was found gone',
      read: () => store.counters.breakerOpened,
    },
    weir_redis_errors_total: {
      help: "Calls that failed, by Redis's error code",
      label: 'code',
      readAll: () => store.counters.scriptErrors,
    },
    weir_redis_late_replies_total: {
      help: 'Calls answered after their deadline',
      read: () => store.counters.lateReplies,
    },
    weir_redis_late_refunds_total: { help: 'Charges of late calls given back', read: () => store.counters.lateRefunds },
    weir_limits_rebased_total: {
      help: 'Counts that began again before their time',
      read: () => store.counters.rebased,
    },
    weir_lease_units_total: { help: 'Units taken beforehand', read: () => layers.counters.leasedUnits },
    weir_addresses_overflowed_total: {
      help: 'Requests of new addresses counted under a shared one',
      read: () => layers.counters.overflowedAddresses,
    },
    weir_ingress_processes: { help: 'Processes that share the limits', read: () => processes.count() },
  })
}

/** Registers what is counted of records, of corrections and of requests that exceed a limit. */
export function registerDecisionService(
  register: Registry,
  { decisionService, settling }: Apps,
  idempotencyRecords: RedisIdempotencyRecords,
): void {
  registerScraped(register, {
    weir_denials_summed_total: {
      help: 'Denials from memory and of unknown callers that share a record',
      read: () => decisionService.recorder.counters.coalesced,
    },
    weir_admission_marks_lost_total: {
      help: 'Recorded admissions under idempotency keys whose repeats will not know',
      read: () => idempotencyRecords.marksLost,
    },
    weir_limit_exceeded_actions_total: {
      help: 'Requests beyond a limit, by what was done with them',
      label: 'action',
      readAll: () => decisionService.exceeded,
    },
    weir_requests_waiting: {
      help: 'Requests that wait for capacity in a limit',
      read: () => decisionService.delays.waiting,
    },
    weir_corrections_total: {
      help: 'Correction records of decisions that were settled or given back',
      read: () => settling.counters.recorded,
    },
    weir_corrections_lost_total: {
      help: 'Charges given back whose correction record the journal did not take',
      read: () => settling.counters.lost,
    },
  })
}

function registerIdentity(register: Registry, { counters }: Authenticator): void {
  registerScraped(register, {
    weir_credentials_rejected_total: {
      help: 'Keys and tokens that belong to no subject, or were not looked up after too many of those',
      label: 'cause',
      readAll: () => ({ unknown: counters.wrong, throttled: counters.throttled }),
    },
    weir_token_verifications_total: { help: 'Signatures of tokens verified', read: () => counters.tokensVerified },
    weir_signing_key_fetches_total: {
      help: 'Requests to issuers for their keys',
      label: 'result',
      readAll: () => ({ ok: counters.keysFetched, failed: counters.keyFetchesFailed }),
    },
  })
}
