import type { PolicyMessage } from '@weir/contracts/policy.v1.ts'
import type { Clock } from '@weir/core/clock.ts'
import type { PolicyFeed } from '@weir/policy-feed/policy-feed.ts'
import type { createAlertAdmin } from './alerts/alert-admin.ts'
import type { DecisionSource } from './decisions/decision-source.ts'
import type { ConsolePlaces } from './http/places.ts'
import type { LimitSource } from './limits/limit-source.ts'
import type { MoneySource } from './money/money-source.ts'
import type { AuditLog } from './policy/audit-log.ts'
import type { ChangeFound } from './policy/change-queries.ts'
import type { ProcessStatus } from './status/ask-processes.ts'
import type { RecentGap } from './status/judge-status.ts'
import type { UsageSource } from './usage/usage-source.ts'

/** The policy as this process has read it from Kafka. `state` and its last change, `checkpoint`, belong together. */
export type PolicyReplica = Pick<PolicyFeed, 'state' | 'checkpoint' | 'stale' | 'reached' | 'problemsOf'>

/** Where changes of the policy are stored, and which there were. */
export interface ChangeSource {
  /** Stores one change atomically, as one batch. Resolves to the offset to wait for; rejects with a WeirError. */
  readonly publish: (messages: readonly PolicyMessage[]) => Promise<bigint>
  readonly audit: AuditLog
  /** Reads one change from the policy's history. Rejects when ClickHouse does not answer. */
  readonly findChange: (by: { readonly id: string; readonly entitiesMax: number }) => Promise<ChangeFound | undefined>
}

/** What only the page of states asks. */
export interface StatusSource {
  /** What was noticed to be missing since then. Rejects when ClickHouse does not answer. */
  recentGaps(sinceMs: number): Promise<readonly RecentGap[]>
  /** What is wrong with Redis; undefined for nothing, or where no Redis is configured. */
  redisProblem(): Promise<string | undefined>
  processes(): Promise<readonly ProcessStatus[]>
}

/** Settings of who may read from where. */
export interface AccessSettings {
  /** The current text of `WEIR_PORTAL_KEY`; empty for none. */
  readonly portalKey: () => string
  /** The current text of `WEIR_UNSUBSCRIBE_KEY`; empty for none. */
  readonly unsubscribeKey: () => string
  /** Where browsers find the console; undefined for those of its own machine alone. */
  readonly publicUrl: URL | undefined
  /** Of pages that may read in a browser. */
  readonly portalOrigins: readonly string[]
}

/** What the features of the console are made of; each takes its own. */
export interface Sources {
  readonly usage: UsageSource
  readonly decisions: DecisionSource
  /** Undefined where no Redis is configured. */
  readonly limits: LimitSource | undefined
  readonly money: MoneySource
  readonly alerts: ReturnType<typeof createAlertAdmin>
  readonly policy: PolicyReplica
  readonly changes: ChangeSource
  readonly status: StatusSource
  readonly access: AccessSettings
  readonly places: ConsolePlaces
  readonly clock: Clock
}
