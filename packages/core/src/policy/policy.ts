import type { Limit } from '../limits/limit.ts'

/** What people write in weir.yaml, checked, with names resolved and defaults filled in. Immutable: a change is a new Policy. */
export interface Policy {
  readonly plans: ReadonlyMap<string, Plan>
  readonly limits: ReadonlyMap<string, Limit>
  /** Limits with `applies: all`, in the policy's order. */
  readonly limitsForAll: readonly Limit[]
  readonly routes: readonly Route[]
  readonly upstreams: ReadonlyMap<string, Upstream>
  readonly subjects: ReadonlyMap<string, Subject>
  /** By lower-case hex SHA-256 of the whole key. */
  readonly keys: ReadonlyMap<string, ApiKey>
  readonly endpoints: ReadonlyMap<string, Endpoint>
}

export interface Plan {
  readonly name: string
  readonly limits: readonly Limit[]
}

/** A method and path pattern with what a request to it costs. */
export interface Route {
  /** `*` or upper case. */
  readonly method: string
  /** find-my-way's syntax: `/v1/search`, `/v1/users/:id`, `/files/*`. */
  readonly path: string
  /** What records and scopes name it by: `METHOD /path`, as written. */
  readonly template: string
  /** Units per request; a non-negative safe integer. */
  readonly cost: number
  /** Name of the upstream, or undefined for the one that the host selects. */
  readonly upstream: string | undefined
  /** Apply to its requests on top of the plan's. Routes with equal limits have the same array. */
  readonly limits: readonly Limit[]
}

/** What a route without limits of its own has. */
export const noRouteLimits: readonly Limit[] = []

export interface Upstream {
  readonly name: string
  /** Origin, without a path: `http://127.0.0.1:9000`. */
  readonly url: string
  /** Host names it answers for, lower case; `*` for any. */
  readonly hosts: readonly string[]
}

export interface Subject {
  readonly id: string
  readonly plan: Plan
  readonly timeZone: string
  readonly anchor: number
  /** Subjects with equal ones have the same map. */
  readonly ownLimits: OwnLimits
}

/** A subject's own versions of limits, by name: the same limits under the same Redis keys, with other settings. */
export type OwnLimits = ReadonlyMap<string, Limit>

/** What a subject without limits of its own has. */
export const noOwnLimits: OwnLimits = new Map()

/** A credential of a subject. The key itself is nowhere. */
export interface ApiKey {
  /** Names the key in records: the policy's `id`, else the first 12 hex digits of the hash. */
  readonly id: string
  readonly sha256: string
  readonly subject: Subject
}

/** Where webhooks go. */
export interface Endpoint {
  readonly name: string
  readonly url: string
  /** The environment variable that holds the `whsec_…` secret. */
  readonly secretEnv: string
  /** Allows loopback and private addresses; off by default against request forgery. */
  readonly allowPrivate: boolean
}
