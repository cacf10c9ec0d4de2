import type { Status } from '@weir/api/status.ts'
import type { ChangeStore } from '@weir/policy-changes/change-store.ts'
import type { createAlertAdmin } from './alerts/alert-admin.ts'
import type { DecisionSource } from './decisions/decision-source.ts'
import type { Semaphores } from './http/semaphore.ts'
import type { LimitSource } from './limits/limit-source.ts'
import type { MoneySource } from './money/money-source.ts'
import type { ProcessStatus } from './status/ask-processes.ts'
import type { UsageSource } from './usage/usage-source.ts'

/** What only the page of states asks. */
export interface StatusSource {
  /** What was noticed to be missing since then. Rejects when ClickHouse does not answer. */
  recentGaps(sinceMs: number): Promise<NonNullable<Status['gaps']>>
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
  /** Where clients reach the ingress; empty for not known. */
  readonly ingressUrl: string
  /** Name and colour on customers' pages; empty for Weir's. */
  readonly vendor: { readonly name: string; readonly color: string }
  /** Of pages that may read in a browser. */
  readonly portalOrigins: readonly string[]
}

/** What the features of the console are made of; each takes its own. */
export interface Sources extends ChangeStore {
  readonly usage: UsageSource
  readonly decisions: DecisionSource
  /** Undefined where no Redis is configured. */
  readonly limits: LimitSource | undefined
  readonly money: MoneySource
  readonly alerts: ReturnType<typeof createAlertAdmin>
  readonly status: StatusSource
  readonly access: AccessSettings
  readonly semaphores: Semaphores
}
