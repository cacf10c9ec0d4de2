import { reasons } from '@weir/core/limits/decision.ts'
import { costMax } from '@weir/core/limits/limit-store.ts'
import type { Static, TSchema } from 'typebox'
import { checkProblem } from './problem.ts'
import { closed, flag, list, type Of, oneOf, optional, text, textOrNull, textsByName, whole } from './schema.ts'
import { Type } from './type.ts'

/*
 * What the check API is asked and answers: checks, settlements and pauses.
 */

/** The most checks of one batch: four calls of the decision script, and an answer of some 50 kB. */
const batchChecksMax = 100

const name = (description: string) => text(description, { minLength: 1, maxLength: 256 })
const cost = (description: string) => whole(description, { minimum: 0, maximum: costMax })
/** A duration above 0, as policies write it. */
const duration = (description: string) => text(description, { maxLength: 20, pattern: '^0*[1-9][0-9]*(ms|s|m|h|d)$' })
const count = (description?: string) => whole(description, { minimum: 0 })
/** The reader of a body words it better that one of the two names the subject. */
const notBoth = { described: { not: { required: ['subject', 'key'] } } }

/** One check. */
export const checkBody = closed(
  {
    subject: optional(
      name(
        'The subject that is checked; or give `key`. Neither where a subject asks about itself. One that the policy does not have is 400, or on the plan `identity.unknown`.',
      ),
    ),
    key: optional(
      name(
        'An API key of the subject that is checked. One that is wrong or has expired authenticates no subject: `reason: unauthorized`.',
      ),
    ),
    ip: optional(
      text(
        "IPv4 or IPv6 address; without, limits by address do not apply. Only with a token: a subject's own credential asks from its connection's.",
        { maxLength: 64, anyOf: [{ format: 'ipv4' }, { format: 'ipv6' }] },
      ),
    ),
    route: optional(
      text(
        'A path, or a method and a path: `POST /v1/search`. Brought into the same normal form as in the proxy; what has none is 400. Limits by `path:NAME` count by that path, so give the one that is asked for and not the pattern of the route.',
        { maxLength: 2_048 },
      ),
    ),
    method: optional(
      text(
        'Instead of in `route`. One that HTTP does not have meets the route that names it, else that of any method, and is recorded, and counted by limits by method, as `OTHER`.',
        { maxLength: 32, pattern: '^[A-Za-z-]*$' },
      ),
    ),
    cost: optional(
      cost(
        "Units; the route's if left out. Required, also for a peek, where requests say their own cost (`cost: header:…`): otherwise 400 `cost-unreadable`. With a subject's own credential not less than the route's, and not more where others share a limit.",
      ),
    ),
    peek: optional(flag('Look only: charges and records nothing; `id` is null.')),
    attributes: optional(
      Type.Unsafe<Record<string, string | number>>({
        type: 'object',
        maxProperties: 32,
        propertyNames: { minLength: 1, maxLength: 64 },
        additionalProperties: { anyOf: [{ type: 'string', maxLength: 256 }, { type: 'number' }] },
        description: 'Up to 32, what limits by `attribute:NAME` count by. Only with a token.',
      }),
    ),
    body: optional(
      Type.Unknown({
        description:
          'The JSON body of the request that is checked, any value, for limits by `body:/pointer`. Only with a token.',
      }),
    ),
    idempotency_key: optional(
      name(
        'Within its subject: an admission is repeated for minutes, and charged once; another question under it is 422 `idempotency-key-reused`. Without effect at cost 0, and where no limit applies and nothing is to be settled. Too many are 429 `too-many-open`.',
      ),
    ),
    settle: optional(
      duration(
        'How long the cost can be corrected by `/v1/settle`, 24h at most: `15m`. Else as long as the route says. Without effect at cost 0, which charges nothing.',
      ),
    ),
    wait: optional(
      duration(
        'If limits refuse it now, it waits up to this long for capacity, 60s at most: `5s`. Not in a batch, and never a peek.',
      ),
    ),
  },
  notBoth,
)
/** One check. */
export type CheckBody = Of<typeof checkBody>

/** Many checks. */
export const batchBody = closed({
  checks: list(checkBody, undefined, { minItems: 1, maxItems: batchChecksMax }),
  headers: optional(flag('Adds to each result the headers that a check of its own would have been answered with.')),
})

/** The correction of a decision's cost. */
export const settleBody = closed({
  id: text("The decision's: `id` of its check, or the header Weir-Decision.", {
    pattern: '^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}$',
  }),
  cost: cost(
    "Units that the request really cost, in place of those that it was charged. At most settleMax of its route, else the size of its largest limit; with a subject's own credential at most what it was charged.",
  ),
  subject: optional(name('Whose decision it is. Required with a token; a subject settles what it asked for itself.')),
})

/** The wish that a limit refuses a subject for a time. */
export const pauseBody = closed(
  {
    subject: optional(name('The subject; or give key. A subject pauses its own limits.')),
    key: optional(name('An API key of the subject; for a limit by key, that key.')),
    limit: text('Name of a limit with onExceed: delay.', { minLength: 1, maxLength: 64 }),
    for: duration('How long it refuses from now on, 31d at most: 30s. A longer pause that was set before stays.'),
  },
  notBoth,
)

const limitStates = (description?: string) =>
  list(
    closed({ name: Type.String(), size: count(), used: count(), remaining: count(), reset_ms: count() }),
    description,
  )
const resultHeaders = textsByName(
  'In a batch that asks for them: the headers of a check of its own, by their names in lower case.',
)

/** What a check is answered. */
export const checkResult = closed({
  id: textOrNull(
    "Of the decision's record; null for a peek, and with WEIR_ON_JOURNAL_FULL=admit where it could not be recorded.",
  ),
  allowed: flag(),
  reason: oneOf(reasons),
  denied_by: text(
    'Name of the first limit that refused, or of an allowed request degraded it; _markers: too many open decisions; or empty.',
  ),
  retry_after_ms: count(),
  on_exceed: optional(
    oneOf(
      ['drop', 'degrade', 'block', 'delay', 'challenge'],
      'What the policy wants done beyond denied_by; absent for deny, and where nothing was exceeded.',
    ),
  ),
  challenge: optional(text('With on_exceed challenge: the page.')),
  suspended: optional(text('Why the subject is suspended; absent where it is not.')),
  headers: optional(resultHeaders),
  limits: limitStates(),
})

/** A schema by its name in the OpenAPI document. */
const named = <Schema extends TSchema>(_: Schema, name: string) =>
  Type.Unsafe<Static<Schema>>({ $ref: `#/components/schemas/${name}` })

/** What a batch is answered. */
export const batchResults = closed({
  results: list(
    Type.Union([
      named(checkResult, 'CheckResult'),
      closed({ problem: named(checkProblem, 'Problem'), headers: optional(resultHeaders) }),
    ]),
    'In the order of the checks.',
  ),
})

/** What a pause is answered. */
export const paused = closed({ limit: Type.String(), retry_after_ms: count('Until the pause ends that stands now.') })

/** What a settlement is answered. */
export const settled = closed({
  id: text('Of the decision.'),
  cost: count('What it is settled to.'),
  adjustment: whole('Units more than it was charged; less below 0.'),
  correction: textOrNull('Id of the correction record; null where there is nothing to correct.'),
  limits: limitStates('Whose counts were corrected, as that left them.'),
})
