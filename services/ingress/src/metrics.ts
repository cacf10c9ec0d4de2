import type { Authenticator } from '@weir/identity/authenticate.ts'
import type { RedisIdempotencyRecords } from '@weir/redis/idempotency-records.ts'
import type { LayeredStore } from '@weir/redis/layers/all-layers.ts'
import type { ProcessCount } from '@weir/redis/layers/process-count.ts'
import type { RedisLimitStore } from '@weir/redis/redis-limit-store.ts'
import { registerScraped } from '@weir/runtime/scraped-metrics.ts'
import type { Registry } from 'prom-client'
import type { Apps } from './app.ts'

/** What the ingress counts. docs/operating.md says what each is for. */
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
    weir_decisions_total: { help: 'Decisions made by Redis', read: () => store.counters.decisions },
    weir_decision_calls_total: { help: 'Script calls that made them', read: () => store.counters.calls },
    weir_decisions_unavailable_total: { help: 'Decisions made without Redis', read: () => store.counters.unavailable },
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
    weir_late_replies_total: { help: 'Calls answered after their deadline', read: () => store.counters.lateReplies },
    weir_late_refunds_total: { help: 'Charges of late calls given back', read: () => store.counters.lateRefunds },
    weir_limits_rebased_total: {
      help: 'Counts that began again before their time',
      read: () => store.counters.rebased,
    },
    weir_decisions_refused_again_total: {
      help: 'Refusals given from memory',
      read: () => layers.counters.refusedFromMemory,
    },
    weir_decisions_leased_total: {
      help: 'Decisions from units taken beforehand',
      read: () => layers.counters.lease.fromMemory,
    },
    weir_lease_units_total: { help: 'Units taken beforehand', read: () => layers.counters.lease.granted },
    weir_decisions_local_total: {
      help: 'Decisions of limits with onUnavailable: local while Redis was away',
      read: () => layers.counters.local.admitted + layers.counters.local.refused,
    },
    weir_addresses_overflowed_total: {
      help: 'Requests of new addresses counted under a shared one',
      read: () => layers.counters.overflowedAddresses,
    },
    weir_ingress_processes: { help: 'Processes that share the limits', read: () => processes.count() },
  })
}

/** Registers what is counted of decisions, of their records and of corrections. */
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
    weir_limits_exceeded_total: {
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
    weir_wrong_credentials_total: {
      help: 'Keys and tokens that belong to no subject',
      read: () => counters.wrong,
    },
    weir_credentials_not_looked_at_total: {
      help: 'Keys and tokens from addresses that had sent too many wrong ones',
      read: () => counters.throttled,
    },
    weir_tokens_verified_total: {
      help: 'Signatures of tokens verified',
      read: () => counters.tokensVerified,
    },
    weir_signing_key_fetches_total: {
      help: 'Requests to issuers for their keys',
      read: () => counters.keyFetches,
    },
    weir_signing_key_fetches_failed_total: {
      help: 'Of these, without a usable answer',
      read: () => counters.keyFetchesFailed,
    },
  })
}
