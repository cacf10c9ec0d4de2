import { reasons } from '@weir/core/limits/decision.ts'
import type { DecisionMetrics, Outcomes } from '@weir/decide/decision-metrics.ts'
import { UncountedShare } from '@weir/decide/uncounted-share.ts'
import type { Authenticator } from '@weir/identity/authenticate.ts'
import type { Journal } from '@weir/journal/open-journal.ts'
import type { Policy } from '@weir/policy/policy.ts'
import type { RedisIdempotencyRecords } from '@weir/redis/idempotency-records.ts'
import type { Layers } from '@weir/redis/layers/all-layers.ts'
import type { ProcessCount } from '@weir/redis/layers/process-count.ts'
import type { RedisLimitStore } from '@weir/redis/redis-limit-store.ts'
import type { LabelCells } from '@weir/runtime/label-cells.ts'
import { registerScraped } from '@weir/runtime/scraped-metrics.ts'
import type { Registry } from 'prom-client'
import type { Apps } from './app.ts'

/** Registers what is counted of callers and of Redis. docs/monitoring.md says what each metric is for. */
export function registerMetrics(
  register: Registry,
  parts: {
    readonly store: RedisLimitStore
    readonly layers: Layers
    readonly processes: ProcessCount
    readonly authenticator: Authenticator
  },
): void {
  const { store, layers, processes, authenticator } = parts
  const { counters: callers } = authenticator
  registerScraped(register, {
    weir_credentials_rejected_total: {
      help: 'Rejected keys and tokens: unknown, or not looked up after too many unknown ones',
      label: 'cause',
      readAll: () => ({ unknown: callers.wrong, throttled: callers.throttled }),
    },
    weir_token_verifications_total: { help: 'Token signatures verified', read: () => callers.tokensVerified },
    weir_signing_key_fetches_total: {
      help: 'Requests to issuers for signing keys',
      label: 'result',
      readAll: () => ({ ok: callers.keysFetched, failed: callers.keyFetchesFailed }),
    },
    weir_redis_call_duration_seconds: {
      help: 'Duration of script calls, from send to reply',
      histogram: store.counters.callDuration,
    },
    weir_redis_call_decisions: { help: 'Requests per script call', histogram: store.counters.callSize },
    weir_redis_servers_gone: { help: 'Redis servers considered down', read: () => store.serversDown },
    weir_redis_breaker_opened_total: {
      help: 'Times a Redis server was found down',
      read: () => store.counters.breakerOpened,
    },
    weir_redis_errors_total: {
      help: 'Failed calls by Redis error code',
      label: 'code',
      readAll: () => store.counters.scriptErrors,
    },
    weir_redis_late_replies_total: {
      help: 'Calls answered after their deadline',
      read: () => store.counters.lateReplies,
    },
    weir_redis_late_refunds_total: { help: 'Refunded charges of late calls', read: () => store.counters.lateRefunds },
    weir_limits_rebased_total: { help: 'Counts that restarted early', read: () => store.counters.rebased },
    weir_lease_units_total: { help: 'Units leased in advance', read: () => layers.counters.leasedUnits },
    weir_addresses_overflowed_total: {
      help: 'Requests of new addresses counted under a shared one',
      read: () => layers.counters.overflowedAddresses,
    },
    weir_ingress_processes: { help: 'Processes that share the limits', read: () => processes.count() },
  })
}

/** Registers what the listeners count: decisions, records, corrections, and the times of answers. */
export function registerApps(
  register: Registry,
  { decisionService, settling, usage, metrics: { answers, upstreams, tokens } }: Apps,
  idempotencyRecords: RedisIdempotencyRecords,
  policy: () => Policy,
): void {
  registerDecisions(register, decisionService.metrics, policy)
  registerLeases(register, decisionService)
  registerScraped(register, {
    weir_http_request_duration_seconds: {
      help: 'Time from the head of a request until the end of its response',
      labels: ['entry_point', 'code'],
      histograms: () =>
        Object.entries(answers).flatMap(([name, { byCode }]) =>
          byCode.map(([code, duration]) => [[name, code], duration] as const),
        ),
    },
    weir_upstream_duration_seconds: {
      help: 'Time from sending a request to its upstream until the end of the response',
      labels: ['upstream'],
      histograms: () => {
        for (const name of policy().upstreams.keys()) upstreams.of(name)
        return seriesOf(upstreams, (name, duration) => [[[name], duration]])
      },
    },
    gen_ai_client_token_usage: {
      help: "Tokens of metered requests as their responses said, by OpenTelemetry's conventions",
      labels: ['gen_ai_provider_name', 'gen_ai_operation_name', 'gen_ai_token_type'],
      histograms: () => {
        const { routes, meters } = policy()
        return tokens.series(routes.map(({ meter = '' }) => meters.get(meter)?.preset ?? meter))
      },
    },
    weir_denials_summed_total: {
      help: 'Denials from memory and of unknown callers, coalesced into shared records',
      read: () => decisionService.recorder.counters.coalesced,
    },
    weir_admissions_summed_total: {
      help: 'Admissions counted in records that those of a second share',
      read: () => decisionService.recorder.counters.admissions,
    },
    weir_admission_marks_lost_total: {
      help: 'Recorded admissions with an idempotency key that repeats will not find',
      read: () => idempotencyRecords.marksLost,
    },
    weir_limit_exceeded_actions_total: {
      help: 'Requests that exceeded a limit, by action',
      label: 'action',
      readAll: () => decisionService.exceeded,
    },
    weir_requests_waiting: {
      help: 'Requests waiting for capacity in a limit',
      read: () => decisionService.delays.waiting,
    },
    weir_slots_held: {
      help: 'Slots of requests in flight through this process',
      read: () => decisionService.slots.held,
    },
    weir_corrections_total: {
      help: 'Correction records of settled or refunded decisions',
      read: () => settling.counters.recorded,
    },
    weir_metered_exchanges_total: {
      help: 'Metered requests that ended, by how their units are known',
      label: 'basis',
      readAll: () => ({ ...usage.counters }),
    },
    weir_hold_exceeded_total: {
      help: 'Metered requests that used more of a unit than they held',
      label: 'unit',
      readAll: () => usage.exceeded,
    },
    weir_corrections_lost_total: {
      help: 'Refunds whose correction record the journal rejected',
      read: () => settling.counters.lost,
    },
  })
}

/** The reasons that an outcome can have. */
const reasonsOf = { allow: ['ok', 'limit', 'unavailable'], deny: reasons.filter((reason) => reason !== 'ok') } as const

type Series<Value> = readonly (readonly [labels: readonly string[], value: Value])[]

const seriesOf = <Cell, Value>(cells: LabelCells<Cell>, of: (name: string, cell: Cell) => Series<Value>) =>
  Array.from(cells.entries(), ([name, cell]) => of(name, cell)).flat()

const outcomes = (name: string, { allow, deny }: Outcomes): Series<number> => [
  [[name, 'allow'], allow],
  [[name, 'deny'], deny],
]

/** Registers what is counted of every decision. */
function registerDecisions(register: Registry, metrics: DecisionMetrics, policy: () => Policy): void {
  const { entryPoints, sources } = metrics
  const uncounted = new UncountedShare(sources)
  /** Shows the names of the policy in force before their first event. */
  const named = () => {
    metrics.addNames(policy())
    return metrics
  }
  registerScraped(register, {
    weir_decisions_total: {
      help: 'Decisions, excluding peeks',
      labels: ['entry_point', 'outcome', 'reason'],
      cells: () =>
        Object.entries(entryPoints).flatMap(([name, cell]) =>
          (['allow', 'deny'] as const).flatMap((outcome) =>
            reasonsOf[outcome].map((reason) => [[name, outcome, reason], cell[outcome][reason]] as const),
          ),
        ),
    },
    weir_decision_source_total: { help: 'Decisions by source', label: 'source', readAll: () => sources },
    weir_decisions_without_redis_ratio: {
      help: 'Share of decisions in the last five minutes that Redis did not count',
      read: () => uncounted.ratio,
    },
    weir_decision_duration_seconds: {
      help: 'Time from the head of a request until its decision is recorded, excluding waits for capacity',
      labels: ['entry_point'],
      histograms: () => Object.entries(entryPoints).map(([name, { duration }]) => [[name], duration] as const),
    },
    weir_limit_decisions_total: {
      help: 'Decisions by limit; deny counts only the limit that refused the request',
      labels: ['limit', 'outcome'],
      cells: () => seriesOf(named().limits, outcomes),
    },
    weir_limit_utilization_ratio: {
      help: 'Used share of a limit after each of its decisions',
      labels: ['limit'],
      histograms: () => seriesOf(named().limits, (name, { utilization }) => [[[name], utilization]]),
    },
    weir_route_decisions_total: {
      help: 'Decisions by route',
      labels: ['route', 'outcome'],
      cells: () => seriesOf(named().routes, outcomes),
    },
    weir_plan_decisions_total: {
      help: "Decisions by the subject's plan",
      labels: ['plan', 'outcome'],
      cells: () => seriesOf(named().plans, outcomes),
    },
  })
}

/** Registers what is counted of the journal and of its publisher; `names` are its topics, by their index in it. */
export function registerJournal(register: Registry, journal: Journal, names: readonly string[]): void {
  const byTopic = (count: keyof ReturnType<Journal['countsOf']>) => ({
    label: 'topic',
    readAll: () => Object.fromEntries(names.map((name, at) => [name, journal.countsOf(at)[count]])),
  })
  registerScraped(register, {
    weir_journal_records_appended_total: { help: 'Records appended', ...byTopic('appended') },
    weir_journal_records_sent_total: { help: 'Records acknowledged by Kafka', ...byTopic('sent') },
    weir_journal_records_refused_total: { help: 'Records rejected by the journal', ...byTopic('refused') },
    weir_journal_records_quarantined_total: { help: 'Records permanently refused by Kafka', ...byTopic('quarantined') },
    weir_journal_records_waiting: { help: 'Records not yet acknowledged', read: () => journal.backlog.records },
    weir_journal_oldest_waiting_seconds: {
      help: 'Age of the oldest unacknowledged record',
      read: () => {
        const { oldestAppendMs } = journal.backlog
        return oldestAppendMs === undefined ? 0 : Math.max(0, Date.now() - oldestAppendMs) / 1_000
      },
    },
    weir_journal_write_duration_seconds: { help: 'Duration of disk writes', histogram: journal.durations.write },
    weir_journal_publish_duration_seconds: {
      help: "Time from appending a batch's oldest record until Kafka has the batch",
      histogram: journal.durations.publish,
    },
    weir_journal_publish_failures_total: {
      help: 'Unacknowledged batches sent again',
      read: () => journal.counters.failedAttempts,
    },
    weir_journal_bytes: { help: 'Bytes of the journal on disk', read: () => journal.backlog.bytes },
    weir_journal_max_bytes: { help: 'Maximum bytes of the journal', read: () => journal.maxBytes },
    weir_journal_gaps_total: {
      help: 'Decisions answered without a record, each counted in a gap',
      read: () => journal.counters.gaps,
    },
    weir_journal_slow_writes_total: { help: 'Slow disk writes', read: () => journal.counters.slowWrites },
    weir_journal_failed_writes_total: { help: 'Failed disk writes', read: () => journal.counters.failedWrites },
    weir_journals_adopted: { help: 'Journals of dead processes being sent', read: () => journal.adopted },
  })
}

/** What applications take ahead. */
function registerLeases(register: Registry, { leasing: { counters } }: Apps['decisionService']): void {
  registerScraped(register, {
    weir_client_leases_total: { help: 'Leases given to applications', read: () => counters.leases },
    weir_client_lease_decisions_total: {
      help: 'Decisions in leases given to applications, whether they were made or not',
      read: () => counters.decisions,
    },
    weir_client_lease_refusals_total: {
      help: 'Refusals that applications gave from memory and reported',
      read: () => counters.refusals,
    },
    weir_client_leases_declined_total: {
      help: 'Leases that were not given',
      label: 'why',
      readAll: () => counters.declined,
    },
  })
}
