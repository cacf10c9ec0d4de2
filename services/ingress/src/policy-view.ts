import { countsInFlight } from '@weir/core/limits/algorithm-facts.ts'
import { RateBook } from '@weir/core/prices/rate-book.ts'
import type { DecisionView } from '@weir/decide/decision-view.ts'
import { ManualBlocks } from '@weir/decide/limits/manual-blocks.ts'
import { type PresetName, presetMeters } from '@weir/meters/meter.ts'
import { type MeterReader, meterReaderOf } from '@weir/meters/meter-reader.ts'
import { createDescriptorMatcher, type DescriptorMatcher } from '@weir/policy/match/match-descriptor.ts'
import { createRouteFinder, createRouteMatcher, findAlike, type RouteFinder } from '@weir/policy/match/match-route.ts'
import { createLimitResolver } from '@weir/policy/match/resolve-limits.ts'
import { createUpstreamResolver } from '@weir/policy/match/resolve-upstream.ts'
import type { Policy, Route, Upstream } from '@weir/policy/policy.ts'
import { createBodyPointers } from './http/body-scopes.ts'
import { createReadHeaders, type ReadHeaders } from './http/client-headers.ts'
import { createScopeReader } from './http/named-scopes.ts'

/** A policy with everything that is computed from it once, not once per request. */
export interface PolicyView extends DecisionView {
  readonly findRoute: RouteFinder
  readonly matchRoute: ReturnType<typeof createRouteMatcher>
  readonly descriptors: DescriptorMatcher
  readonly resolveUpstream: ReturnType<typeof createUpstreamResolver>
  readonly readScopes: ReturnType<typeof createScopeReader>
  readonly bodyPointers: ReturnType<typeof createBodyPointers>
  readonly readHeaders: ReadHeaders
  /** What measures the requests of a route that names a meter. */
  meterOf(route: Route): MeterReader | undefined
  /** Whose errors refusals of a route look like: its meter's API, else the one API of its upstream's other routes. */
  presetOf(host: string | undefined, route: Route): PresetName | undefined
}

/**
 * The policy in force. An entry point reads `view` once per request and keeps to it: a change in the middle of a
 * request is seen by the next.
 */
export type LivePolicy = ReturnType<typeof createLivePolicy>

/** What was computed from unchanged parts of the policy is reused, because requests wait for the rest. */
function viewOf(policy: Policy, offset: () => number, before?: PolicyView): PolicyView {
  const { routes, upstreams } = policy
  const isFound = before !== undefined && findAlike(before.policy.routes, routes)
  const findRoute = isFound ? before.findRoute : createRouteFinder(routes)
  const resolveLimits = createLimitResolver(policy)
  const resolveUpstream =
    before?.policy.upstreams === upstreams ? before.resolveUpstream : createUpstreamResolver({ upstreams })
  const meterOf = ({ meter }: Route) => {
    const found = meter === undefined ? undefined : (policy.meters.get(meter) ?? presetMeters.get(meter))
    return found && meterReaderOf(found)
  }
  /** By upstream: programs ask it by one SDK, mostly, also where no route meters it. */
  const presets = new Map<Upstream, PresetName | undefined>()
  return {
    policy,
    offset,
    manualBlocks: new ManualBlocks(policy.blocks),
    hasSlots: [...policy.limits.values()].some(countsInFlight),
    rates: policy.rateCards.size === 0 ? undefined : new RateBook(policy.rateCards.values()),
    findRoute,
    matchRoute: createRouteMatcher(routes, findRoute),
    descriptors: before?.policy.routes === routes ? before.descriptors : createDescriptorMatcher(routes),
    resolveLimits,
    resolveWithoutAddress: createLimitResolver(policy, ({ by }) => by.every(({ kind }) => kind !== 'ip')),
    resolveUpstream,
    readScopes: createScopeReader(policy),
    bodyPointers: createBodyPointers(policy, resolveLimits),
    readHeaders: createReadHeaders(policy),
    meterOf,
    presetOf(host = '', route) {
      const own = meterOf(route)?.meter.preset
      const upstream = resolveUpstream(host, route)
      if (own !== undefined || upstream?.isMetered !== true) return own
      if (!presets.has(upstream)) {
        const mayHave = ({ upstream: name }: Route) =>
          name === undefined ? upstream.hosts.length > 0 : upstreams.get(name) === upstream
        const its = routes.filter(mayHave)
        const found = new Set(its.flatMap((one) => meterOf(one)?.meter.preset ?? []))
        presets.set(upstream, found.size === 1 ? [...found][0] : undefined)
      }
      return presets.get(upstream)
    },
  }
}

/** Starts with a policy; without `isStale` it is always known to be in force. */
export function createLivePolicy(policy: Policy, isStale: () => boolean = () => false, firstOffset = -1) {
  let last = { offset: firstOffset }
  const offsetOf = (change: { readonly offset: number }) => () => change.offset
  let view = viewOf(policy, offsetOf(last))
  return {
    get view(): PolicyView {
      return view
    },
    /** Whether requests are to be denied, because it is not known any more whether this is the policy in force. */
    isStale,
    /** The next request is decided by this policy. */
    replace(next: Policy, offset = -1): void {
      last = { offset }
      view = viewOf(next, offsetOf(last), view)
    },
    /** A change of subjects and keys alone came into force: the policy is the same object. */
    moveTo(offset: number): void {
      last.offset = offset
    },
  }
}
