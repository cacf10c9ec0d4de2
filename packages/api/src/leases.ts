import { leaseCountMax, leaseDeclines } from '@weir/core/limits/lease.ts'
import { checkBody, checkResult, limitStates, named, settleBody } from './check.ts'
import { checkProblem } from './problem.ts'
import { closed, described, flag, list, type Of, oneOf, optional, text, textsByName, whole } from './schema.ts'
import { Type } from './type.ts'

/*
 * Units that applications take ahead, to decide with by themselves.
 */

/** Of each list: as many questions as a round of a busy application has. */
const itemsMax = 100
const items = { maxItems: itemsMax }

const { subject, key, ip, route, method, cost, attributes } = checkBody.properties
/** What a check asks, of which the answer is the same for a while. */
const question = { subject, key, ip, route, method, cost, attributes }

const { id, cost: settledCost } = settleBody.properties
/** The outcome of a lease that was not used up. */
export const leaseSettlement = closed({
  id,
  subject: text('As the lease said.', { minLength: 1, maxLength: 256 }),
  cost: described(settledCost, 'Units that were used.'),
})
/** Refusals that were repeated from memory. */
export const leaseRefusals = closed({
  ...question,
  denied_by: text('The limit that refused, as an earlier check said.', { minLength: 1, maxLength: 64 }),
  count: whole('Requests.', { minimum: 1, maximum: 1_000_000 }),
})
/** A question to decide about without Weir. */
export const leaseWish = closed({
  ...question,
  want: whole('Decisions; fewer may be given.', { minimum: 1, maximum: leaseCountMax }),
})

/** What a round of an application says and asks. */
export const leasesBody = closed({
  settle: optional(list(leaseSettlement, 'Leases that were not used up. Settled before the rest.', items)),
  refused: optional(
    list(leaseRefusals, 'Refusals that were repeated from memory, to be recorded. Not safe to repeat.', items),
  ),
  lease: optional(list(leaseWish, 'Questions to decide about without Weir.', items)),
})

/** The same, with items that are read one by one. */
export const leasesRound = closed({
  settle: optional(list(Type.Unknown(), undefined, items)),
  refused: optional(list(Type.Unknown(), undefined, items)),
  lease: optional(list(Type.Unknown(), undefined, items)),
})

const problem = closed({ problem: named(checkProblem, 'Problem') })

/** What a round is answered, list by list in the order of its items. */
export const leasesResults = closed({
  settled: list(Type.Union([closed({ id: Type.String(), adjustment: whole('As for `POST /v1/settle`.') }), problem])),
  refused: list(Type.Union([closed({ recorded: flag('False: not counted; do not repeat.') }), problem])),
  leases: list(
    Type.Union([
      closed({
        id: text('Id of the record that counts all of them; each decision has it.'),
        subject: text('Whose lease it is, to settle it.'),
        count: whole('Decisions to be made.', { minimum: 1 }),
        cost: whole('Units of each; a lease of which N are used is settled to N × cost.', { minimum: 1 }),
        ends_ms: whole('From the request on: what is not used by then is not used at all.', { minimum: 1 }),
        life_ms: whole('How long a lease of this question lasts that no window cuts short.', { minimum: 1 }),
        limits: limitStates('As they are when all are used.'),
        headers: textsByName(
          'Headers for responses. `{r0}` stands for what the first of `limits` has left, `{t0}` for the seconds until it resets, `{e0}` for the Unix time of that.',
        ),
      }),
      closed({
        count: whole('None.', { const: 0 }),
        why: oneOf(
          leaseDeclines,
          'The policy; a limit or the route; what is left; a limit or a block; Redis or the journal.',
        ),
        retry_ms: optional(whole('With too-little: when to ask again; absent: in a second.')),
        result: optional(named(checkResult, 'CheckResult')),
      }),
      problem,
    ]),
  ),
})

/** What a round is answered. */
export type LeasesResults = Of<typeof leasesResults>
