import { isOfOneSubject } from '@weir/core/limits/limit.ts'
import type { Route } from '@weir/policy/policy.ts'
import { type Problem, problem } from '@weir/runtime/problem.ts'
import type { PolicyView } from '../../policy-view.ts'
import type { CheckPrincipal } from './authorize-caller.ts'
import type { CheckBody } from './check-body.ts'

/** The refusal of what a valid credential may not do. */
export const forbidden = (detail: string): Problem => problem('forbidden', 'Forbidden', 403, detail)

const needsToken = (detail: string) => forbidden(`${detail}, or ask with a token that has the scope check.`)

const otherOrigin = needsToken(
  "A subject's own credential asks from the address of its connection, and without attributes: leave out ip and attributes",
)
const costTooLow = (cost: number) =>
  needsToken(
    `A subject's own credential asks for what the route costs at least: give a cost of ${cost} or leave it out`,
  )
const costShared = needsToken(
  'Others share a limit of this check, so a subject does not ask for more than the route costs: leave out cost',
)
const costTooHigh = needsToken('The cost is above the size of a limit of this check: give a lower one')

/**
 * The reason why a subject may not check this with its own credential; undefined if it may. A check must not count at
 * an address or an attribute that is not the caller's, and one large cost must not use up what other subjects share. A
 * peek charges nothing, so that it may have any cost.
 */
export function whyNotOwn(
  { resolveLimits, resolveWithoutAddress }: PolicyView,
  { subject, ip }: Extract<CheckPrincipal, { readonly kind: 'subject' }>,
  body: CheckBody,
  route: Route,
): Problem | undefined {
  if (body.ip !== undefined || body.attributes !== undefined) return otherOrigin
  const { cost = route.cost, peek = false } = body
  if (peek || cost === route.cost) return undefined
  if (cost < route.cost) return costTooLow(route.cost)
  const limits = (ip === '' ? resolveWithoutAddress : resolveLimits)(subject, route)
  if (limits.some(({ by }) => !isOfOneSubject(by))) return costShared
  return limits.some(({ capacity }) => cost > capacity) ? costTooHigh : undefined
}
