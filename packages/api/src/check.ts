import { reasons } from '@weir/core/limits/decision.ts'
import { unitPattern } from '@weir/core/limits/limit.ts'
import { costMax, unitsPerRequestMax } from '@weir/core/limits/limit-store.ts'
import { nanosPerRequestMax } from '@weir/core/prices/rate-card.ts'
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
const units = (description: string) =>
  Type.Unsafe<Readonly<Record<string, number>>>({
    type: 'object',
    minProperties: 1,
    maxProperties: unitsPerRequestMax,
    propertyNames: { pattern: unitPattern },
    // A rate card's unit is an amount in billionths; of all others the ingress takes `costMax`.
    additionalProperties: { type: 'integer', minimum: 0, maximum: nanosPerRequestMax },
    description,
  })
/** The reader of a body words it better that one of the two names the subject. */
const notBoth = { described: { not: { required: ['subject', 'key'] } } }

/** One check. */
export const checkBody = closed(
  {
    subject: optional(
      name(
        'The subject to check; alternatively, send `key`. Omit both with a subject’s own credential. An unknown subject returns 400, or uses the plan in `identity.unknown`.',
      ),
    ),
    key: optional(
      name(
        'An API key of the subject to check. A wrong or expired key authenticates no subject: `reason: unauthorized`.',
      ),
    ),
    ip: optional(
      text(
        "IPv4 or IPv6 address; limits by address do not apply if it is omitted. Only with a token: a subject's own credential uses the address of its connection.",
        { maxLength: 64, anyOf: [{ format: 'ipv4' }, { format: 'ipv6' }] },
      ),
    ),
    route: optional(
      text(
        'A path, or a method and a path: `POST /v1/search`. Weir normalises it as in the proxy; a path that cannot be normalised returns 400. Limits by `path:NAME` count by this path, so send the requested path, not the route pattern.',
        { maxLength: 2_048 },
      ),
    ),
    method: optional(
      text(
        'The method, if `route` has none. A non-standard method matches the route that names it, else the route for any method; records and limits by method treat it as `OTHER`.',
        { maxLength: 32, pattern: '^[A-Za-z-]*$' },
      ),
    ),
    cost: optional(
      cost(
        "Units; default: the route's cost. Required, even for a peek, if requests state their own cost (`cost: header:…`): otherwise 400 `cost-unreadable`. With a subject's own credential, the cost must be at least the route's cost, or equal to it if a limit is shared with other subjects.",
      ),
    ),
    units: optional(
      units(
        'Quantities for limits with a `unit`, such as `{"tokens": 4096}`. With `settle` they are held until `/v1/settle` replaces them; without it they are used.',
      ),
    ),
    peek: optional(flag('Dry run: charges and records nothing; `id` is null.')),
    attributes: optional(
      Type.Unsafe<Record<string, string | number>>({
        type: 'object',
        maxProperties: 32,
        propertyNames: { minLength: 1, maxLength: 64 },
        additionalProperties: { anyOf: [{ type: 'string', maxLength: 256 }, { type: 'number' }] },
        description: 'Up to 32 attributes, for limits by `attribute:NAME`. Only with a token.',
      }),
    ),
    body: optional(
      Type.Unknown({
        description:
          'The JSON body of the request to check (any value), for limits by `body:/pointer`. Only with a token.',
      }),
    ),
    idempotency_key: optional(
      name(
        'Unique per subject: repeating an allowed check returns the same answer for several minutes and charges only once; a different check with the same key returns 422 `idempotency-key-reused`. Has no effect at cost 0, or if no limit applies and nothing can be settled. Too many open keys return 429 `too-many-open`.',
      ),
    ),
    settle: optional(
      duration(
        'How long afterwards `/v1/settle` can correct the cost, at most 24h, such as `15m`. Default: set by the route. Has no effect at cost 0, which charges nothing.',
      ),
    ),
    wait: optional(
      duration(
        'If limits refuse the check now, wait up to this long for capacity, at most 60s, such as `5s`. Not allowed in a batch or for a peek.',
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
  headers: optional(flag('Adds to each result the headers that a single check would have returned.')),
})

const decisionId = text('Id of the decision: `id` of its check, or the header Weir-Decision.', {
  pattern: '^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}$',
})
const ofDecision = name(
  'Subject of the decision. Required with a token; a subject’s own credential settles only its own checks.',
)

/** The correction of a decision's cost. */
export const settleBody = closed(
  {
    id: decisionId,
    cost: optional(
      cost(
        "Units that the request actually cost; replaces the charge. Default: the charge. At most the route's settleMax, else the size of its largest limit; with a subject's own credential, at most the charge.",
      ),
    ),
    units: optional(
      units(
        "Quantities that the request actually used; each replaces what is held, and a unit that is missing stays as held. With a subject's own credential, at most what is held.",
      ),
    ),
    subject: optional(ofDecision),
  },
  { anyOf: [{ required: ['cost'] }, { required: ['units'] }] },
)

/** A decision whose hold ends, or goes on. */
export const holdBody = closed({ id: decisionId, subject: optional(ofDecision) })

/** The wish that a limit refuses a subject for a time. */
export const pauseBody = closed(
  {
    subject: optional(name('The subject, or give `key`. With its own credential, a subject pauses its own limits.')),
    key: optional(name('An API key of the subject; for a limit by key, that key.')),
    limit: text('Name of a limit with onExceed: delay.', { minLength: 1, maxLength: 64 }),
    for: duration(
      'How long the limit refuses from now on, at most 31d, such as 30s. A longer pause already in effect stays.',
    ),
  },
  notBoth,
)

const quantities = (description: string) =>
  Type.Unsafe<Readonly<Record<string, number>>>({
    type: 'object',
    additionalProperties: { type: 'integer' },
    description,
  })
/** Limits as a decision left them. */
export const limitStates = (description?: string) =>
  list(
    closed({
      name: Type.String(),
      size: count(),
      used: count(),
      remaining: count(),
      reset_ms: count(),
      at: optional(text('The ancestor that it counts; absent for the subject itself.')),
    }),
    description,
  )
const resultHeaders = textsByName('With `headers` in a batch: the headers of a single check, with lower-case names.')

/** What a check is answered. */
export const checkResult = closed({
  id: textOrNull('Id of the record; null for a peek, or if WEIR_ON_JOURNAL_FULL=admit let an unrecorded request pass.'),
  allowed: flag(),
  reason: oneOf(reasons),
  denied_by: text(
    'Name of the first limit that refused the request, or degraded an allowed one; _markers: too many open decisions; else empty.',
  ),
  retry_after_ms: count(),
  on_exceed: optional(
    oneOf(
      ['drop', 'degrade', 'block', 'delay', 'challenge'],
      'What the policy prescribes for the limit in denied_by; absent for deny, and if no limit was exceeded.',
    ),
  ),
  challenge: optional(text('With on_exceed challenge: address of the page.')),
  suspended: optional(text('Why the subject is suspended; absent if it is not.')),
  headers: optional(resultHeaders),
  limits: limitStates(),
})

/** A schema by its name in the OpenAPI document. */
export const named = <Schema extends TSchema>(_: Schema, name: string) =>
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
export const paused = closed({ limit: Type.String(), retry_after_ms: count('Until the current pause ends.') })

/** What a renewal is answered. */
export const renewed = closed({
  id: text('Id of the decision.'),
  open_ms: count('For so long it can be settled, and its slots last, unless it is renewed again.'),
})

/** What a settlement is answered. */
export const settled = closed({
  id: text('Id of the decision.'),
  cost: count('The settled cost.'),
  units: optional(quantities('What the decision used of other units, once settled; absent if it held none.')),
  adjustment: whole('Difference to the charge, in units; negative for a refund.'),
  correction: textOrNull('Id of the correction record; null if there is nothing to correct.'),
  limits: limitStates('Limits whose counts were corrected, after the correction.'),
})
