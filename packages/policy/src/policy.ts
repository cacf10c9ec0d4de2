import type { AlertType } from '@weir/core/alerts/alert-types.ts'
import type { PathMark } from '@weir/core/http/marked-path.ts'
import type { Limit } from '@weir/core/limits/limit.ts'
import type { Refusal, Refusals } from '@weir/core/limits/refusal.ts'
import type { PriceList } from '@weir/core/prices/price-list.ts'
import type { RateCard } from '@weir/core/prices/rate-card.ts'
import type { Meter } from '@weir/meters/meter.ts'
import type { Token } from './access-token.ts'
import type { CostSource } from './policy-values.ts'
import type { EndpointKeys } from './reader/endpoint-keys.ts'

/** What people write in weir.yaml, checked: names resolved, defaults filled in. A change is a new Policy. */
export interface Policy {
  readonly plans: ReadonlyMap<string, Plan>
  readonly prices: ReadonlyMap<string, PriceList>
  /** By name, which is the unit that each makes. */
  readonly rateCards: ReadonlyMap<string, RateCard>
  readonly limits: ReadonlyMap<string, Limit>
  /** Limits with `applies: all`, in the policy's order. */
  readonly limitsForAll: readonly Limit[]
  readonly routes: readonly Route[]
  /** By their kinds: how requests are answered that no route and no limit has a refusal for. */
  readonly refusals: ReadonlyMap<string, Refusal>
  readonly upstreams: ReadonlyMap<string, Upstream>
  /** Those that routes name, besides the presets. */
  readonly meters: ReadonlyMap<string, Meter>
  readonly subjects: SubjectLookup
  /** By lower-case hex SHA-256 of the whole key. */
  readonly keys: KeyLookup
  readonly endpoints: ReadonlyMap<string, Endpoint>
  readonly watches: ReadonlyMap<string, Watch>
  readonly silences: ReadonlyMap<string, Silence>
  readonly blocks: ReadonlyMap<string, ManualBlock>
  readonly identity: Identity
  /** Tokens of people and programs that work with Weir itself, by lower-case hex SHA-256. */
  readonly tokens: Lookup<Token>
  /** By subject: portal tokens that were made before this stood here are refused. Compared as a text. */
  readonly portals: ReadonlyMap<string, string>
  /** By subject, where its own alerts are sent. */
  readonly contacts: Pick<Lookup<Contact>, 'get'>
  /** By subject, the hashes of addresses of its contact that get no mail. */
  readonly unsubscribed: ReadonlyMap<string, readonly string[]>
  /** By subject, what customers have chosen themselves. */
  readonly ownAlerts: ReadonlyMap<string, OwnAlerts>
}

/** A read-only map of up to a million entries, each of which is made when it is read. */
export interface Lookup<T> {
  readonly size: number
  get(key: string): T | undefined
  keys(): Iterable<string>
  values(): Iterable<T>
}

/** Keys by their hash. A Map is one. */
export interface KeyLookup extends Lookup<ApiKey> {
  /** The key of this id, without looking at a million keys. */
  withId?(id: string): ApiKey | undefined
}

/** Returns the key of an id; undefined for none. */
export const keyWithId = ({ keys }: Pick<Policy, 'keys'>, id: string): ApiKey | undefined =>
  keys.withId === undefined ? [...keys.values()].find((key) => key.id === id) : keys.withId(id)

/** Subjects by id. A Map is one. */
export interface SubjectLookup extends Lookup<Subject> {
  /** What subjects say of themselves now, once for all that say the same: without asking a million subjects. */
  settings?(): Iterable<SubjectSettings>
  /** Whether a subject has others of the policy below it; absent: ask them all. */
  isParent?(id: string): boolean
}

/** Every set of own limits that some subject has now. */
export const ownLimitSetsOf = ({ subjects }: Pick<Policy, 'subjects'>): Iterable<OwnLimits> =>
  new Set(Array.from(subjects.settings?.() ?? subjects.values(), ({ ownLimits }) => ownLimits))

/** A named set of limits. */
export interface Plan {
  readonly name: string
  readonly limits: readonly Limit[]
  /** Name of the price list of its subjects; absent if they pay nothing. */
  readonly prices?: string
  /** Whether its subjects' own keys may read their usage, where the subject says nothing else; absent: they may not. */
  readonly selfService?: boolean | undefined
  /** What customers see instead of the name, and a sentence about it. */
  readonly title?: string
  readonly about?: string
  /** Whether its subjects may choose addresses and percentages for their alerts; absent: they may not. */
  readonly ownAlerts?: boolean | undefined
  /** Whether admissions of a second that are alike share a record, where the route does not say; absent: no. */
  readonly coalesces?: boolean | undefined
  /** For how long applications may decide with units that they took ahead, in milliseconds; absent: they may not. */
  readonly clientLeaseMs?: number | undefined
}

/**
 * The plan of subjects without one: only limits of routes and those that apply to all bind them. Its name is no
 * plan's.
 */
export const noPlan: Plan = { name: '', limits: [] }

/** A method and path pattern with what a request to it costs. */
export interface Route {
  /** `*` or upper case. */
  readonly method: string
  /** find-my-way's syntax: `/v1/search`, `/v1/users/:id`, `/files/*`. */
  readonly path: string
  /** What records and scopes name it by: `METHOD /path`, as written. */
  readonly template: string
  /** Units per request; a non-negative safe integer. 1 where `costFrom` says it. */
  readonly cost: number
  /** Where each request says what it costs; undefined for those that all cost the same. */
  readonly costFrom: CostSource | undefined
  /** Name of the upstream, or undefined for the one that the host selects. */
  readonly upstream: string | undefined
  /** Apply to its requests on top of the plan's. Routes with equal limits have the same array. */
  readonly limits: readonly Limit[]
  /** How long its decisions can be settled, in milliseconds; absent if they cannot, unless a check asks for it. */
  readonly settleMs?: number
  /** Most units that a decision can be settled to; absent for the capacity of the largest of its limits. */
  readonly settleMax?: number
  /** Statuses of the upstream's answer, or of Weir's own instead, for which the charge is refunded. */
  readonly refundOn?: readonly number[]
  /** Of a route for descriptors: their hits were used already, and are charged whether they fit or not. */
  readonly chargesBeyond?: true
  /** How its requests are answered that are refused; absent for as everywhere. */
  readonly refusals?: Refusals
  /** What measures what its requests use besides their cost, `none` where nothing is to; absent for nothing. */
  readonly meter?: string
  /** Whether admissions of a second that are alike share a record; absent: as the plan says. */
  readonly coalesces?: boolean
  /** Shortens what the plan says of units that applications take ahead, in milliseconds; 0 for none. */
  readonly clientLeaseMs?: number
}

/** What a route without limits of its own has. */
export const noRouteLimits: readonly Limit[] = []

/** An API behind the ingress. */
export interface Upstream {
  readonly name: string
  /** Origin, without a path: `http://127.0.0.1:9000`. */
  readonly url: string
  /** Host names it answers for, lower case; `*.NAME` for all below that name, `*` for any. */
  readonly hosts: readonly string[]
  /** The upstream counts as down when it sends nothing for this long. */
  readonly timeoutMs: number
  /** What it takes for data in paths, so that paths with these are passed on as they came. */
  readonly keepInPath: readonly PathMark[]
  /** It gets the client's `Host` instead of its own. */
  readonly preserveHost: boolean
  /** Weir answers preflights and says which pages may read answers; undefined where the upstream does. */
  readonly cors: Cors | undefined
  /** What it gets instead of the client's, by lower-case name: a text, a secret, or nothing. Absent for none. */
  readonly headers?: ReadonlyMap<string, UpstreamHeader>
  /** It is not told whose request it is: a supplier, who knows Weir alone. */
  readonly isAnonymous?: true
  /** Requests that no meter measures are refused. */
  readonly isMetered?: true
  /** Requests with it at a time, and as many that wait; absent for the process's bound. */
  readonly connections?: number
  /** How long it may pause within an answer; absent for `timeoutMs`. */
  readonly idleMs?: number
  /** How long a metered request may last before what it holds counts as used; absent for twelve hours. */
  readonly maxDurationMs?: number
}

/** A header that Weir sets: `secretEnv` names the variable that has it, or whose file has it. Null removes it. */
export type UpstreamHeader = string | { readonly secretEnv: string } | null

/** Which pages may read answers, by the Fetch standard. */
export interface Cors {
  /** Scheme, host and port; `*` for all. */
  readonly origins: readonly string[]
  /** Whether cookies and HTTP authentication of the browser go along; never with `*`. */
  readonly credentials: boolean
}

/** A customer, user or address that is limited and metered. What the plan may have too is its own, and counts first. */
export interface Subject extends Pick<Plan, 'prices' | 'selfService' | 'ownAlerts'> {
  readonly id: string
  readonly plan: Plan
  readonly timeZone: string
  /** The day of the month on which months begin, 1 to 31. */
  readonly anchor: number
  /** Subjects with equal ones have the same map. */
  readonly ownLimits: OwnLimits
  /** Why all its requests are refused, as they are told; absent: they are not. */
  readonly suspended?: string | undefined
  /** The subject above it, whose plan's limits count its requests too; absent for none. */
  readonly parent?: Subject | undefined
}

/** All of a subject but who it is, and whose. */
export type SubjectSettings = Omit<Subject, 'id' | 'parent'>

/** Returns the price list of a subject: its own, else its plan's; undefined for one that pays nothing. */
export const pricesOf = ({ prices }: Pick<Policy, 'prices'>, subject: Subject): PriceList | undefined =>
  prices.get(subject.prices ?? subject.plan.prices ?? '')

/** Returns whether the subject's own keys may read its own usage. */
export const isSelfService = ({ selfService, plan }: Subject): boolean => selfService ?? plan.selfService ?? false

/** Returns whether the subject may choose addresses and percentages for its own alerts. */
export const hasOwnAlerts = ({ ownAlerts, plan }: Subject): boolean => ownAlerts ?? plan.ownAlerts ?? false

/** A subject's own versions of limits, by name: the same limits under the same Redis keys, with other settings. */
export type OwnLimits = ReadonlyMap<string, Limit>

/** What a subject without limits of its own has. */
export const noOwnLimits: OwnLimits = new Map()

/** A credential of a subject. The key itself is not stored. */
export interface ApiKey {
  /** Names the key in records: the policy's `id`, else the first 12 hex digits of the hash. */
  readonly id: string
  readonly sha256: string
  /** With the key's own limits in addition to its own. */
  readonly subject: Subject
  /** From then on the key is not accepted, in milliseconds since the epoch; undefined for never. */
  readonly expiresAtMs: number | undefined
}

/** How callers are identified. The order is fixed: key, JWT, trusted header, address. */
export interface Identity {
  /** Headers that may carry a key, lower case, in the order they are looked at; of `authorization` its Bearer token. */
  readonly keyHeaders: readonly string[]
  /** Query parameter that may carry a key; undefined, as it is unless asked for: addresses end up in logs. */
  readonly keyQuery: string | undefined
  readonly jwt: readonly JwtIssuer[]
  readonly trustedHeaders: TrustedHeaders | undefined
  /** CIDRs of the trusted proxies, which say the caller's address and the original request. */
  readonly trustedProxies: readonly string[]
  /** Of callers with an IPv6 address the network of so many bits counts as their address: 32 to 64. */
  readonly ipv6Prefix: number
  /** The plan of callers without any credential, who are the subject `ip:ADDRESS` then; undefined refuses them. */
  readonly anonymousPlan: Plan | undefined
  /**
   * The plan of subjects that the policy does not have and a token names at the check API or over gRPC; undefined
   * refuses them.
   */
  readonly unknownPlan: Plan | undefined
}

/** Who signs tokens of callers, and what their claims mean. */
export interface JwtIssuer {
  readonly issuer: string
  readonly jwksUrl: string
  /** A token must have it, if it is given here. */
  readonly audience: string | undefined
  /** Names of RFC 7518 and RFC 8037; never `none`, never symmetric ones. */
  readonly algorithms: readonly string[]
  readonly subjectClaim: string
  readonly planClaim: string | undefined
  /** Names the parent of subjects that the policy does not have, if it has that subject. */
  readonly parentClaim?: string | undefined
  /** The plan of subjects that the policy does not have and whose token names none; undefined refuses them. */
  readonly plan: Plan | undefined
  /** Allows a JWKS at a loopback or private address. */
  readonly allowPrivate: boolean
}

/** Headers in which proxies that have authenticated the caller name it. */
export interface TrustedHeaders {
  /** CIDRs of peers that are believed. */
  readonly from: readonly string[]
  /** Names of headers, lower case. */
  readonly subject: string
  readonly planHeader: string | undefined
  /** As `parentClaim` of JwtIssuer. */
  readonly parentHeader?: string | undefined
  /** As in JwtIssuer. */
  readonly plan: Plan | undefined
}

/** The identity section of a policy that has none. */
export const defaultIdentity: Identity = {
  keyHeaders: ['authorization', 'x-api-key'],
  keyQuery: undefined,
  jwt: [],
  trustedHeaders: undefined,
  trustedProxies: [],
  ipv6Prefix: 64,
  anonymousPlan: undefined,
  unknownPlan: undefined,
}

/** Alerts that report a sudden change, found by polling ClickHouse. */
export const watchedAlerts = [
  'weir.denied_rate.high',
  'weir.allowed.high',
  'weir.allowed.dropped',
] as const satisfies readonly AlertType[]

/** What makes a change of denied, or of allowed requests a sudden one: one window compared with the twelve before. */
export interface Watch {
  readonly name: string
  readonly alert: (typeof watchedAlerts)[number]
  /** Each subject's or each address's requests by themselves, or those of all together. */
  readonly per: 'subject' | 'address' | 'all'
  /** Whole minutes. */
  readonly windowMs: number
  /** How many times as much, or as little, as usual. */
  readonly factor: number
  /** Fewer requests, in the window or in the windows that it is compared with, raise no alert. */
  readonly least: number
  /** The alert is not raised again for this long. */
  readonly cooldownMs: number
}

/** Which alerts an endpoint gets: those that meet every condition that is there. */
export interface AlertChoice {
  readonly types?: readonly AlertType[]
  readonly limits?: readonly string[]
  readonly subjects?: readonly string[]
  /** The least percentage of a quota. */
  readonly percent?: number
}

/** Alerts that are sent to no endpoint. */
export interface Silence {
  readonly name: string
  /** Has at least one condition. */
  readonly only: Omit<AlertChoice, 'percent'>
  /** Alerts that were raised from then on, in milliseconds since the epoch. */
  readonly fromMs: number
  /** The first instant after it. */
  readonly untilMs: number
}

/** What a customer has chosen for its own alerts, where its plan or itself lets it. */
export interface OwnAlerts {
  /** Confirmed; each gets a mail of its own, as an address of the contact does. */
  readonly email: readonly string[]
  /** Not confirmed yet: they get nothing but the mail with the link. */
  readonly pending: readonly {
    readonly email: string
    readonly atMs: number
    /** It is counted for its day, and gets nothing. */
    readonly isRemoved: boolean
  }[]
  /** Of each calendar limit, in addition to its thresholds. */
  readonly percents: readonly number[]
}

/** A caller that a person blocks for a while, or an address that no limit by address applies to. */
export interface ManualBlock {
  readonly name: string
  /** Who: exactly one of these. */
  readonly subject?: string | undefined
  readonly keyId?: string | undefined
  /** With its prefix: `192.0.2.7/32`. */
  readonly network?: string | undefined
  /** Only of a network: it is exempt, and not blocked. */
  readonly isExempt: boolean
  /** The first instant after it, in milliseconds since the epoch. */
  readonly untilMs: number
}

/** Where a subject itself gets its alerts, through endpoints of type `subject`. Has at least one of both. */
export interface Contact {
  /** Each address gets a mail of its own. Never empty. */
  readonly email?: readonly string[] | undefined
  readonly webhook?: Pick<EndpointOf<'webhook'>, 'url' | 'secretEnv' | 'allowPrivate'> | undefined
}

/** What all endpoints have. */
interface AnyEndpoint {
  readonly name: string
  readonly only: AlertChoice
  /** Alerts wait while it is paused, for as long as a delivery is tried at all. */
  readonly isPaused: boolean
}

type OptionalKeys<T> = { [K in keyof T]: undefined extends T[K] ? K : never }[keyof T]

/** An endpoint of a type, with the keys that the type has in `reader/endpoint-keys.ts`. */
export type EndpointOf<T extends keyof EndpointKeys> = T extends unknown
  ? AnyEndpoint & { readonly type: T } & Omit<EndpointKeys[T], OptionalKeys<EndpointKeys[T]>> &
      Partial<Pick<EndpointKeys[T], OptionalKeys<EndpointKeys[T]>>>
  : never

/** Where alerts go. */
export type Endpoint = EndpointOf<keyof EndpointKeys>

/** An address that alerts are sent to, by one of the channels. */
export type Target = EndpointOf<Exclude<keyof EndpointKeys, 'subject'>>
