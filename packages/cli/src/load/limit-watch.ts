import { type Limit, partText } from '@weir/core/limits/limit.ts'
import type { ScopeValues } from '@weir/core/limits/limit-store.ts'
import { createRouteMatcher, unmatchedRoute } from '@weir/policy/match/match-route.ts'
import { createLimitResolver } from '@weir/policy/match/resolve-limits.ts'
import { subjectNamed } from '@weir/policy/named-subject.ts'
import type { Policy, Route } from '@weir/policy/policy.ts'
import { limitKey } from '@weir/redis/keys.ts'
import { CountWatch } from './count-watch.ts'
import { verdictOf, whyUnknown } from './limit-verdict.ts'
import type { Profile } from './profile.ts'
import type { AnsweredDecision, LoadRequest } from './sender.ts'

/** What requests of one kind are charged to. */
interface Charged {
  readonly cost: number
  readonly counts: readonly { readonly name: string; readonly count: CountWatch }[]
}

const nothing: Charged = { cost: 0, counts: [] }

/** Watches by the policy's definitions what the limits admit. */
export class LimitWatch {
  readonly #policy: Policy
  readonly #via: Profile['via']
  readonly #matchRoute: ReturnType<typeof createRouteMatcher>
  readonly #limitsOf: ReturnType<typeof createLimitResolver>
  /** By limit and then by key: own versions of subjects are limits of their own. */
  readonly #limits = new Map<Limit, { readonly counts: Map<string, CountWatch>; readonly routes: Set<Route> }>()
  readonly #charged = new WeakMap<LoadRequest, Charged>()
  readonly #refused = new Map<string, number>()

  constructor(policy: Policy, via: Profile['via']) {
    this.#policy = policy
    this.#via = via
    this.#matchRoute = createRouteMatcher(policy.routes)
    // Only the proxy knows the address of the load.
    this.#limitsOf = createLimitResolver(policy, ({ by }) => via === 'proxy' || by.every(({ kind }) => kind !== 'ip'))
  }

  onDecision(asked: LoadRequest, decision: AnsweredDecision, sentMs: number, answeredMs: number): void {
    const { allowed, reason, deniedBy, unitMs, limits } = decision
    const { cost, counts } = this.#chargedBy(asked)
    if (!allowed) {
      this.#refused.set(deniedBy, (this.#refused.get(deniedBy) ?? 0) + 1)
      return
    }
    for (const { name, count } of counts) {
      if (reason === 'unavailable') count.uncounted += 1
      const state = limits.find((one) => one.name === name)
      if (state !== undefined) count.admit(cost, { sentMs, answeredMs, unitMs, resetMs: state.resetMs })
    }
  }

  #chargedBy(asked: LoadRequest): Charged {
    let charged = this.#charged.get(asked)
    if (charged === undefined) {
      charged = this.#resolve(asked)
      this.#charged.set(asked, charged)
    }
    return charged
  }

  #resolve({ subject: id, method, path, cost }: LoadRequest): Charged {
    const subject = subjectNamed(this.#policy, id)
    if (subject === undefined) return nothing
    const [bare = '/'] = path.split('?')
    const route = this.#matchRoute(method, bare) ?? unmatchedRoute
    const scope: ScopeValues = { subject: id, keyId: '', ip: '', route: route.template, method }
    const counts = this.#limitsOf(subject, route).map((limit) => {
      const known = this.#limits.get(limit) ?? { counts: new Map<string, CountWatch>(), routes: new Set<Route>() }
      this.#limits.set(limit, known)
      known.routes.add(route)
      const key = limitKey(limit, scope)
      const count = known.counts.get(key) ?? new CountWatch(limit, subject, scope)
      known.counts.set(key, count)
      return { name: limit.name, count }
    })
    return { cost: cost ?? route.cost, counts }
  }

  /** Reports every limit that requests met, in the order in which they met them. */
  report() {
    return [...this.#limits].map(([limit, { counts, routes }]) => {
      const { name, algorithm, size, capacity, span, by } = limit
      const all = [...counts.values()].filter(({ requests, uncounted }) => requests + uncounted > 0)
      return {
        name,
        algorithm,
        size,
        capacity,
        window_ms: span.kind === 'window' ? span.ms : null,
        period: span.kind === 'period' ? span.unit : null,
        by: by.map(partText),
        /** Counts of its own that requests were admitted by. */
        counts: all.length,
        admitted_requests: all.reduce((sum, { requests }) => sum + requests, 0),
        admitted_units: all.reduce((sum, { units }) => sum + units, 0),
        refused: this.#refused.get(name) ?? 0,
        /** Requests that were admitted without Redis, and so counted nowhere. Only the check API says that. */
        without_redis: all.reduce((sum, { uncounted }) => sum + uncounted, 0),
        ...verdictOf(limit, all, whyUnknown(limit, routes, this.#via), this.#via),
      }
    })
  }
}

/** What the load saw of a limit, in the names of the report. */
export type LimitReport = ReturnType<LimitWatch['report']>[number]
