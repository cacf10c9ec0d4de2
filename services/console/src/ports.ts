import type { Readable } from 'node:stream'
import type { ExportQuestion } from '@weir/clickhouse/billing-queries.ts'
import type { BlockQuery, BlockRow } from '@weir/clickhouse/block-queries.ts'
import type { ChangeFound } from '@weir/clickhouse/change-queries.ts'
import type { DecisionPlace, ListedDecision } from '@weir/clickhouse/decision-list.ts'
import type { DecisionRelated, DecisionRow } from '@weir/clickhouse/decision-queries.ts'
import type { AlertReach } from '@weir/clickhouse/delivery-queries.ts'
import type { Impact } from '@weir/clickhouse/impact/impact.ts'
import type { ImpactQuestion } from '@weir/clickhouse/impact/replay-impact.ts'
import type { Gap } from '@weir/clickhouse/mark-queries.ts'
import type { PolicyAt } from '@weir/clickhouse/policy-history.ts'
import type { OutcomeRow, PagePlace, UsageRow, UsageTotals } from '@weir/clickhouse/usage-queries.ts'
import type { StreamQuestion } from '@weir/clickhouse/usage-stream.ts'
import type { UtilizationPlace, UtilizationRow } from '@weir/clickhouse/utilization-queries.ts'
import type { PolicyMessage } from '@weir/contracts/policy.v1.ts'
import type { Clock } from '@weir/core/clock.ts'
import type { Limit } from '@weir/core/limits/limit.ts'
import type { CountedOffset } from '@weir/core/prices/export-cursor.ts'
import type { Period } from '@weir/core/prices/forecast.ts'
import type { RouteUsage } from '@weir/core/prices/quote.ts'
import type { UsedHour } from '@weir/core/prices/rated-usage.ts'
import type { Completeness } from '@weir/core/usage/complete-through.ts'
import type { DecisionQuery } from '@weir/core/usage/decision-query.ts'
import type { Reach } from '@weir/core/usage/reach.ts'
import type { OutcomeQuery, UsageQuery } from '@weir/core/usage/usage-query.ts'
import type { UtilizationQuery } from '@weir/core/usage/utilization-query.ts'
import type { PolicyEdit } from '@weir/policy/impact/policy-edit.ts'
import type { PolicyFeed } from '@weir/policy-feed/policy-feed.ts'
import type { AskedLimits, AskedScope, LimitQuery } from '@weir/redis/asked-limits.ts'
import type { ChangedLimits, LiftedBlock, LimitChange, OnForgotten } from '@weir/redis/limit-admin.ts'
import type { StandingBlocks } from '@weir/redis/standing-blocks.ts'
import type { createAlertAdmin } from './alerts/alert-admin.ts'
import type { LiveDecisions } from './decisions/live-decisions.ts'
import type { ConsolePlaces } from './http/places.ts'
import type { PeekLimits } from './limits/current-state.ts'
import type { AuditLog } from './policy/audit-log.ts'
import type { ProcessStatus } from './status/ask-processes.ts'
import type { RecentGap } from './status/judge-status.ts'

/** The policy as this process has read it from Kafka. `state` and its last change, `checkpoint`, belong together. */
export type PolicyReplica = Pick<PolicyFeed, 'state' | 'checkpoint' | 'stale' | 'reached' | 'problemsOf'>

/** Counts of limits in Redis. Rejects when Redis does not answer. */
export type ChangeCounts = (
  asked: AskedLimits,
  question: LimitQuery,
  change: LimitChange,
  onForgotten: OnForgotten,
) => Promise<ChangedLimits>

/** What only the page of states asks. */
export interface StatusSources {
  /** What was noticed to be missing since then. Rejects when ClickHouse does not answer. */
  recentGaps(sinceMs: number): Promise<readonly RecentGap[]>
  /** What is wrong with Redis; undefined for nothing, or where no Redis is configured. */
  redisProblem(): Promise<string | undefined>
  processes(): Promise<readonly ProcessStatus[]>
}

/** Decisions and what belongs to them. Every method rejects when ClickHouse does not answer. */
export interface DecisionReader {
  readonly list: (reach: Reach, query: DecisionQuery, place: DecisionPlace) => Promise<readonly ListedDecision[]>
  readonly find: (
    reach: Reach,
    asked: { readonly id: string; readonly idMs: number },
  ) => Promise<DecisionRow | undefined>
  readonly related: (within: AlertReach, row: DecisionRow) => Promise<DecisionRelated>
  /** Undefined where the history of the policy does not go back so far. */
  readonly policyAt: (asked: {
    readonly offset: number
    readonly tsMs: number
    readonly subject: string
  }) => Promise<PolicyAt | undefined>
}

/** What exports of rated usage read. */
export interface ExportReader {
  readonly askExport: (question: ExportQuestion) => Promise<readonly UsedHour[]>
  /** The last record of each partition, of those since a time. */
  readonly readCountedOffsets: (fromMs: number) => Promise<readonly CountedOffset[]>
  /** The policies just before subjects were deleted, of those that were. */
  readonly readFormerPolicies: (subjects: readonly string[]) => Promise<ReadonlyMap<string, Pick<PolicyAt, 'entities'>>>
}

/** What finds blocks. Every method rejects when ClickHouse or Redis does not answer. */
export interface BlockPorts extends StandingBlocks {
  readonly read: (reach: Reach, query: BlockQuery) => Promise<readonly BlockRow[]>
  readonly lift: (
    key: string,
    limit: Limit | undefined,
    forget: boolean,
    scope: AskedScope,
    onForgotten: OnForgotten,
  ) => Promise<LiftedBlock>
}

/** The servers and stores that the console uses. */
export interface Ports {
  /** Rejects when the rollups cannot be read. */
  readonly askUsage: (reach: Reach, query: UsageQuery, place: PagePlace) => Promise<UsageRow[]>
  /** Sums all that a question asks for. Rejects when the rollup cannot be read. */
  readonly askUsageTotals: (reach: Reach, query: UsageQuery) => Promise<UsageTotals>
  /** Rejects when the rollup cannot be read. */
  readonly askOutcomes: (reach: Reach, query: OutcomeQuery, place: PagePlace) => Promise<OutcomeRow[]>
  /** Rejects when the rollup cannot be read. */
  readonly askUtilization: (reach: Reach, query: UtilizationQuery, place: UtilizationPlace) => Promise<UtilizationRow[]>
  /** Opens the whole answer to a question as a stream. Rejects when the rollup cannot be read. */
  readonly openStream: (reach: Reach, question: StreamQuestion, signal: AbortSignal) => Promise<Readable>
  /** Decides recorded requests again, by an edited policy. Rejects when ClickHouse does not answer. */
  readonly askImpact: (edit: PolicyEdit, question: ImpactQuestion) => Promise<Impact>
  /** Reads what a subject's allowed decisions used in a period, by route. Rejects when the rollup cannot be read. */
  readonly askPeriodUsage: (reach: Reach, subject: string, period: Period) => Promise<readonly RouteUsage[]>
  /** What exports of rated usage read. Each rejects when ClickHouse does not answer. */
  readonly exports: ExportReader
  /** Reads how far the rows of one kind are complete, before they are read. Rejects if the marks cannot be read. */
  readonly askCompleteness: (rows: 'decisions' | 'outcomes') => Promise<Completeness>
  /** Reads what of one kind is missing for good in a span of time. Rejects when ClickHouse does not answer. */
  readonly readGaps: (rows: 'decisions' | 'outcomes', span: Period) => Promise<readonly Gap[]>
  readonly decisions: DecisionReader
  /** Undefined where no Redis is configured. */
  readonly blocks: BlockPorts | undefined
  readonly live: LiveDecisions
  readonly places: ConsolePlaces
  /** Reads one change from the policy's history. Rejects when ClickHouse does not answer. */
  readonly findChange: (asked: {
    readonly id: string
    readonly entitiesMax: number
  }) => Promise<ChangeFound | undefined>
  readonly alerts: ReturnType<typeof createAlertAdmin>
  readonly policy: PolicyReplica
  /** Stores one change atomically, as one batch. Resolves to the offset to wait for; rejects with a WeirError. */
  readonly publish: (messages: readonly PolicyMessage[]) => Promise<bigint>
  readonly audit: AuditLog
  /** Undefined where no Redis is configured. */
  readonly changeCounts: ChangeCounts | undefined
  /** Undefined where no Redis is configured. */
  readonly peekLimits: PeekLimits | undefined
  readonly statusSources: StatusSources
  /** The current text of `WEIR_PORTAL_KEY`; empty for none. */
  readonly portalKey: () => string
  /** The current text of `WEIR_UNSUBSCRIBE_KEY`; empty for none. */
  readonly unsubscribeKey: () => string
  /** Where browsers find the console; undefined for those of its own machine alone. */
  readonly publicUrl: URL | undefined
  /** Of pages that may read in a browser. */
  readonly portalOrigins: readonly string[]
  readonly clock: Clock
}
