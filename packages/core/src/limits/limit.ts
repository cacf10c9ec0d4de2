import type { Refusals } from './refusal.ts'

/** The algorithms by their names in the policy; docs/limits.md says what each promises. */
export const algorithms = ['fixed_window', 'sliding_window', 'sliding_log', 'token_bucket', 'concurrency'] as const
/** One of `algorithms`. */
export type Algorithm = (typeof algorithms)[number]

/** The calendar periods that a limit can be counted over. */
export const periodUnits = ['minute', 'hour', 'day', 'week', 'month'] as const
/** One of `periodUnits`. */
export type PeriodUnit = (typeof periodUnits)[number]

/** The longest length of each period, daylight saving aside. */
export const longestPeriodMs: Readonly<Record<PeriodUnit, number>> = {
  minute: 60_000,
  hour: 3_600_000,
  day: 86_400_000,
  week: 7 * 86_400_000,
  month: 31 * 86_400_000,
}

/** How short a period can be: an hour less where clocks are put forward. */
export const shortestPeriodMs: Readonly<Record<PeriodUnit, number>> = {
  minute: longestPeriodMs.minute,
  hour: longestPeriodMs.hour,
  day: 23 * 3_600_000,
  week: (7 * 24 - 1) * 3_600_000,
  month: (28 * 24 - 1) * 3_600_000,
}

/** Starts of the current period, the next and the one after, in milliseconds since the epoch; strictly ascending. */
export type PeriodBoundaries = readonly [thisStartMs: number, nextMs: number, afterNextMs: number]

/** What a limit is counted over: a length of time aligned to the epoch, or a calendar period in the subject's zone. */
export type Span =
  | { readonly kind: 'window'; readonly ms: number }
  | { readonly kind: 'period'; readonly unit: PeriodUnit }

/** Dimensions with the name of what is read. Redis keys have them in this order: later ones go to the end. */
export const namedScopeKinds = ['header', 'query', 'attribute', 'path', 'claim', 'cookie', 'body'] as const
/** All dimensions that Redis keys write, in their order. */
export const scopeKinds = ['key', 'ip', 'route', 'method', ...namedScopeKinds] as const
/** One of `namedScopeKinds`. */
export type NamedScopeKind = (typeof namedScopeKinds)[number]

/** Names of units that callers count besides the cost and requests; none is a member of every object. */
export const unitPattern = '^(?!(?:cost|requests|constructor)$)[a-z][a-z0-9_]{0,63}$'

/** One dimension that a limit is counted by. */
export type ScopePart =
  | { readonly kind: 'subject' | 'key' | 'ip' | 'route' | 'method' | 'global' }
  | { readonly kind: NamedScopeKind; readonly name: string }

/** A dimension as the policy writes it: `header:x-team`. */
export const partText = (part: ScopePart): string => ('name' in part ? `${part.kind}:${part.name}` : part.kind)

/** Whether no two subjects ever share one of the counts of a limit with this `by`. */
export const isOfOneSubject = (by: readonly ScopePart[]): boolean =>
  by.some(({ kind }) => kind === 'subject' || kind === 'key')

/** Returns whether a limit counts others with the subject, by its scope or as one of a subject above. */
export const isShared = ({ by, level }: Pick<Limit, 'by' | 'level'>): boolean =>
  level !== undefined || !isOfOneSubject(by)

/** Percent of a limit's size, or units whatever its size. */
export type Threshold = { readonly percent: number } | { readonly units: number }

/** One of several descriptors of one request, each with its own values and its own cost. */
export interface DescriptorOverride {
  /** Values for `attribute:` scopes, by the scope's whole text. */
  readonly named: ReadonlyMap<string, string>
  /** Units; a non-negative safe integer. */
  readonly cost: number
  /** Denies if a unit does not fit, and charges nothing: `cost` is 0. */
  readonly isPeek?: boolean
}

/**
 * What the limit does with a request that does not fit. `drop`: it gets no answer. `delay`: it waits for capacity, for
 * up to `delayMs` and with up to `queueMax` others. `degrade`: it passes, and a header informs the upstream.
 * `challenge`: the client is redirected to that page. `block` is `deny` for a limit with a `block`. `charge`: it is
 * counted all the same, because it was used already; never in a policy.
 */
export type OnExceed =
  | { readonly kind: 'deny' | 'drop' | 'degrade' | 'block' | 'charge' }
  | { readonly kind: 'delay'; readonly delayMs: number; readonly queueMax: number }
  | { readonly kind: 'challenge'; readonly url: string }

/** A limit of the policy, checked and with every default filled in. */
export interface Limit {
  /** Unique in the policy and part of the Redis key: editing anything else keeps the count. Printable ASCII. */
  readonly name: string
  readonly algorithm: Algorithm
  /** Units allowed per span, or flowing back per span (`token_bucket`); a safe integer, 0 only for a `fixed_window`. */
  readonly size: number
  /** Most units that can be used at one moment: the `burst` of a `token_bucket`, else `size`. */
  readonly capacity: number
  /** Of `concurrency` the time after which a slot ends that its holder cannot renew. */
  readonly span: Span
  /**
   * What it counts; absent for the cost. `requests`: each request is one, as always of `concurrency`. Else a unit that
   * callers name, such as `tokens`.
   */
  readonly unit?: string
  /** Of a limit that counts money, in whole nano-units: the currency of its rate card, by ISO 4217. */
  readonly currency?: string
  /** Most units of a request that it holds until the request is settled; absent for all that it may use. */
  readonly hold?: number
  /** Never empty. */
  readonly by: readonly ScopePart[]
  /** `plan`: for subjects whose plan names it. `all`: for everybody, above every plan. */
  readonly applies: 'plan' | 'all'
  /** Names of the plans to whose subjects it applies, wherever it is named; never empty. Absent: to those of any. */
  readonly plans?: readonly string[]
  /** `shadow`: counts what it would admit and reports what it would refuse, but refuses nothing. */
  readonly mode: 'enforce' | 'shadow'
  /** A caller who exceeds the limit is blocked for this long, at most; 0 for not. */
  readonly blockMs: number
  /**
   * Of a limit whose blocks grow: the length of the first, of the second in a row and so on, ascending; the last is
   * `blockMs`. Undefined where all are equally long.
   */
  readonly blockLengths?: readonly number[] | undefined
  /** Always `deny` for a limit in shadow; never `delay` or `degrade` with a block or a lease. */
  readonly onExceed: OnExceed
  /** Units that a process takes in one call, to decide from memory; 0 for none. Only `fixed_window` can have one. */
  readonly lease: number
  /** Of a `token_bucket`: applications may take its units ahead, and so make bursts longer; absent: they may not. */
  readonly clientLease?: true
  /** The decision when Redis does not answer in time. */
  readonly onUnavailable: 'allow' | 'deny' | 'local'
  /** Use at which an alert is raised; each once, percents and units each ascending. Empty for none. */
  readonly thresholds: readonly Threshold[]
  /** An alert is raised when, at the pace so far, the quota ends before its period. Only with a day, week or month. */
  readonly forecast?: true
  /** Names of limits that do not apply where this one does; absent for none. Those replace nothing themselves. */
  readonly replaces?: readonly string[]
  /** How requests are answered that it refuses; absent for as everywhere. */
  readonly refusals?: Refusals
  /** What customers see instead of the name. */
  readonly title?: string
  /** A sentence about it for customers. */
  readonly about?: string
  /** Records say the values of its named scopes as they are; absent where they say their hashes. */
  readonly record?: 'plain'
  /** Of an ancestor's plan, and counted there: 1 for the parent. Absent for the subject itself; never in a policy. */
  readonly level?: number
  /** Only in requests with `hasOverrides`: values and cost for this limit instead of the request's own. */
  readonly override?: DescriptorOverride
  /**
   * Of a limit without a period: after an alert the same one is not raised for this long. 0 for a limit with a period.
   */
  readonly cooldownMs: number
}

/** Most limits of a decision, so that a script call stays bounded. Also checked in lua/scripts/decide.lua. */
export const limitsPerDecisionMax = 16
