import type { Limit } from '@weir/core/limits/limit.ts'
import type { Policy, Route, Subject } from '../policy.ts'
import { withoutReplaced } from './resolve-limits.ts'

/** A limit that applies to a subject, with the words of the policy that make it do so. */
export interface ExplainedLimit {
  /** In the subject's own version, if it has one. */
  readonly limit: Limit
  /** `plan free`, `route POST /v1/search`, `applies: all`; at least one. */
  readonly because: readonly string[]
  /** Whether the subject has its own version. */
  readonly own: boolean
}

/**
 * Why which limits apply to a subject's requests to a route, in the order in which they decide; without a route, to its
 * requests to any. For people: decisions take theirs from `createLimitResolver`, which says the same.
 */
export function explainLimits(policy: Policy, subject: Subject, route: Route | undefined): readonly ExplainedLimit[] {
  const { plan, ownLimits } = subject
  const routes = route === undefined ? policy.routes : [route]
  const sources = [
    ...plan.limits.map((limit) => ({ limit, because: `plan ${plan.name}` })),
    ...routes.flatMap(({ limits, template }) => limits.map((limit) => ({ limit, because: `route ${template}` }))),
    ...policy.limitsForAll.map((limit) => ({ limit, because: 'applies: all' })),
  ]
  const byName = new Map<string, { readonly limit: Limit; readonly because: string[] }>()
  for (const { limit, because } of sources) {
    const known = byName.get(limit.name)
    if (known === undefined) byName.set(limit.name, { limit, because: [because] })
    else known.because.push(because)
  }
  // Over all routes, what one of them replaces applies on the others.
  const applying = route === undefined ? undefined : withoutReplaced([...byName.values()].map(({ limit }) => limit))
  const explained = [...byName.values()].filter(({ limit }) => applying?.includes(limit) ?? true)
  return explained.map(({ limit, because }) => {
    const own = ownLimits.get(limit.name)
    return { limit: own ?? limit, because, own: own !== undefined }
  })
}
