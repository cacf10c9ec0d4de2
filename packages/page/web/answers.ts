/** The answers of the API, as far as the page reads them. */

export interface Complete {
  readonly complete_through: string | null
  readonly silent: readonly { readonly journal: string; readonly since: string }[]
}

export interface Sums {
  readonly count: string
  readonly allowed: string
  readonly denied: string
  readonly cost: string
}

export interface UsageRow extends Sums {
  readonly ts?: string
  readonly subject?: string
  readonly route?: string
  readonly plan?: string
  readonly key_id?: string
  readonly method?: string
  readonly outcome?: string
  readonly denied_by?: string
  readonly other?: boolean
  readonly groups?: string
  readonly previous?: Sums
  readonly change?: number | null
}

export interface Usage extends Complete {
  readonly from: string
  readonly to: string
  readonly step: string
  readonly next: string | null
  readonly rows: readonly UsageRow[]
  readonly totals: Sums & { readonly change?: number | null }
}

export interface OutcomeRow {
  readonly ts?: string
  readonly subject?: string
  readonly route?: string
  readonly method?: string
  readonly count: number
  readonly status_4xx: number
  readonly status_5xx: number
  readonly p50_ms: number | null
  readonly p90_ms: number | null
  readonly p99_ms: number | null
}

export interface Outcomes extends Complete {
  readonly rows: readonly OutcomeRow[]
}

/** How near a subject came to a limit. */
export interface NearLimit {
  readonly subject: string
  readonly limit: string
  readonly share: number
  readonly used: string
  readonly size: string
  readonly runs_out: string | null
}

export interface DecisionRow {
  readonly id: string
  readonly ts: string
  readonly subject: string
  readonly key_id: string
  readonly plan: string
  readonly route: string
  readonly method: string
  readonly cost: number
  readonly count: number
  readonly outcome: string
  readonly reason: string
  readonly mode: string
  readonly denied_by: string
  readonly ip: string
  readonly outcome_record?: { readonly status: number; readonly duration_ms: number; readonly error: string } | null
}

export interface Decisions extends Complete {
  readonly rows: readonly DecisionRow[]
  readonly next: string | null
}

export interface LimitThen {
  readonly name: string
  readonly because?: readonly string[]
  readonly algorithm?: string
  readonly mode?: string
  readonly size: number
  readonly used: number | null
  readonly remaining: number | null
  readonly needed: number
  readonly refused: boolean
  readonly by: Readonly<Record<string, string>>
  readonly reset_at?: string
}

export interface Hint {
  readonly how: 'wait' | 'cost' | 'size' | 'burst' | 'plan'
  readonly ms?: number
  readonly at_most?: number
  readonly limit?: string
  readonly at_least?: number
  readonly plan?: string
  readonly together_with?: readonly string[]
  /** Limits that the record does not have: they are taken for unused. */
  readonly assumed_unused?: readonly string[]
}

type Settings = Readonly<Record<string, unknown>>

export interface Explained extends DecisionRow {
  readonly summary: string
  readonly limits: readonly LimitThen[]
  readonly allowed_at: string | null
  readonly would_have_allowed: readonly Hint[]
  readonly blocked_by: { readonly id: string; readonly ts: string } | null
  readonly policy: {
    readonly exact: boolean
    readonly change?: string
    readonly at?: string
    readonly since_changed: readonly {
      readonly kind: string
      readonly name: string
      readonly before: Settings | null
      readonly now: Settings | null
    }[]
  } | null
  readonly now: {
    readonly allowed: boolean | null
    readonly plan: string
    readonly denied_by: string
    readonly limits: readonly {
      readonly name: string
      readonly size: number
      readonly used: number | null
      readonly remaining: number | null
    }[]
  } | null
  readonly corrections: readonly { readonly id: string; readonly adjustment: number }[]
  readonly alerts: readonly string[]
}

export interface Status extends Complete {
  readonly at: string
  readonly ok: boolean
  readonly look: readonly string[]
  readonly warnings: readonly string[]
  readonly gaps: readonly { readonly cause: string; readonly topic: string; readonly count: string }[] | null
  readonly failed_deliveries: readonly { readonly endpoint: string; readonly count: number }[] | null
  readonly held_back: readonly { readonly endpoint: string; readonly addresses: number }[]
  readonly redis: string | null
  readonly policy: { readonly change: string; readonly at: string; readonly by: string } | null
  readonly processes: readonly {
    readonly name: string
    readonly url: string
    readonly ready: boolean
    readonly said: readonly string[]
    readonly metrics: Readonly<Record<string, unknown>>
  }[]
}

export interface Page<Item> {
  readonly items: readonly Item[]
  readonly next: string | null
}

export interface Alert {
  readonly id: string
  readonly type: string
  readonly subject: string
  readonly time: string
  readonly state: string
  readonly summary: string
  readonly data: Settings
  readonly deliveries: Readonly<Record<string, string>>
}

export interface AlertWhole extends Omit<Alert, 'deliveries'> {
  /** Attempts at one endpoint before it is given up. */
  readonly attempts_max: number
  readonly deliveries: readonly {
    readonly endpoint: string
    readonly attempt: number
    readonly at: string
    readonly outcome: string
    readonly status: number
    readonly ms: number
    readonly error: string
    readonly next_try: string | null
    readonly answer: string
  }[]
}

export interface Block {
  readonly id: string
  readonly limit: string
  readonly subject: string | null
  readonly ip: string | null
  readonly scope: Readonly<Record<string, string>>
  readonly since: string
  readonly until: string
  readonly refusals: number
  readonly decision: string
}

export interface Entity {
  readonly name: string
  readonly origin: string
  readonly etag: string
  readonly body: Settings
}

export interface Change {
  readonly id: string
  readonly at: string
  readonly by: string
  readonly summary: readonly { readonly what: string; readonly kind: string; readonly name: string }[]
  readonly total: number
}

export interface ChangeWhole extends Change {
  readonly entities: readonly {
    readonly kind: string
    readonly name: string
    readonly before: Settings | null
    readonly after: Settings | null
  }[]
}

export interface Key {
  readonly id: string
  readonly subject: string
  readonly expires: string | null
}

/** How a limit of a subject stands now. */
export interface LimitStands {
  readonly name: string
  readonly because: readonly string[]
  readonly mode: string
  readonly size: number
  readonly capacity: number
  readonly window_ms: number | null
  readonly period: string | null
  readonly by: readonly string[]
  readonly used: number | null
  readonly remaining: number | null
  readonly reset_ms: number | null
  readonly blocked_ms: number | null
}

export interface Limits {
  readonly plan: string
  readonly limits: readonly LimitStands[]
}

export interface QuoteLine {
  readonly name: string
  readonly measure: string
  readonly mode: string
  readonly per?: number | string
  readonly quantity: number | string
  readonly included: number | string
  readonly billable: number | string
  readonly amount: string
  readonly tiers: readonly {
    readonly up_to?: number | string
    readonly quantity: number | string
    readonly packages?: number | string
    readonly unit_amount: string
    readonly flat_amount: string
    readonly amount: string
  }[]
}

export interface Quote {
  readonly prices: string
  readonly currency: string
  readonly lines: readonly QuoteLine[]
  readonly flat: string
  readonly minimum_added: string
  readonly total: string
}

/** What a running month costs so far. */
export interface Spend extends Complete {
  readonly subject: string
  readonly period: { readonly from: string; readonly to: string; readonly time_zone: string }
  readonly quote: Quote
  readonly forecast?: Quote
}
