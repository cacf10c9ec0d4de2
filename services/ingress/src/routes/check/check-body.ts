import { costMax } from '@weir/core/limits/limit-store.ts'
import { Ajv } from 'ajv'
import type { CallerAuthorizer } from './authorize-caller.ts'

/** One check as it comes over the wire. */
export interface CheckBody {
  readonly subject?: string
  readonly key?: string
  readonly ip?: string
  readonly route?: string
  readonly method?: string
  readonly cost?: number
  readonly peek?: boolean
  readonly attributes?: Readonly<Record<string, string | number>>
  readonly body?: unknown
  readonly idempotency_key?: string
  readonly settle?: string
  readonly wait?: string
}

/** The most checks of one batch: four calls of the decision script, and an answer of some 50 kB. */
const batchChecksMax = 100

/** The id of a subject, the text of a key, and the like. */
export const nameSchema = { type: 'string', minLength: 1, maxLength: 256 } as const
/** Units of a check or a settlement. */
export const costSchema = { type: 'integer', minimum: 0, maximum: costMax } as const
/** A duration above 0, as policies write it. */
export const durationSchema = { type: 'string', maxLength: 20, pattern: '^0*[1-9][0-9]*(ms|s|m|h|d)$' } as const

/** What a check may say. */
export const checkSchema = {
  type: 'object',
  additionalProperties: false,
  properties: {
    subject: { ...nameSchema, description: 'The subject that is checked; or give key.' },
    key: { ...nameSchema, description: 'An API key of the subject that is checked.' },
    ip: {
      type: 'string',
      maxLength: 64,
      anyOf: [{ format: 'ipv4' }, { format: 'ipv6' }],
      description:
        "IPv4 or IPv6 address; without, limits by address do not apply. Only with a token: a subject's own credential asks from its connection's.",
    },
    route: { type: 'string', maxLength: 2_048, description: 'A path, or a method and a path: POST /v1/search.' },
    method: { type: 'string', maxLength: 32, pattern: '^[A-Za-z-]*$' },
    cost: {
      ...costSchema,
      description:
        "Units; the route's if left out. Required for routes whose requests say their own cost. With a subject's own credential not less than the route's, and not more where others share a limit.",
    },
    peek: { type: 'boolean', description: 'Look only: charges and records nothing.' },
    attributes: {
      type: 'object',
      maxProperties: 32,
      propertyNames: { minLength: 1, maxLength: 64 },
      additionalProperties: { anyOf: [{ type: 'string', maxLength: 256 }, { type: 'number' }] },
      description: 'What limits by attribute:NAME count by. Only with a token.',
    },
    body: {
      description: 'The JSON body of the request that is checked, for limits by body:/pointer. Only with a token.',
    },
    idempotency_key: {
      ...nameSchema,
      description: 'Within its subject: an admission is repeated for minutes, and charged once.',
    },
    settle: { ...durationSchema, description: 'How long the cost can be corrected by /v1/settle, 24h at most: 15m.' },
    wait: {
      ...durationSchema,
      description:
        'If limits refuse it now, it waits up to this long for capacity, 60s at most: 5s. Not in a batch, and never a peek.',
    },
  },
} as const

/** What its reader says in better words: one of the two names the subject. */
export const notBoth = { not: { required: ['subject', 'key'] } } as const

/** What a batch may say. */
export const batchSchema = {
  type: 'object',
  additionalProperties: false,
  required: ['checks'],
  properties: {
    checks: { type: 'array', minItems: 1, maxItems: batchChecksMax, items: { ...checkSchema, ...notBoth } },
    headers: {
      type: 'boolean',
      description: 'Adds to each result the headers that a check of its own would have been answered with.',
    },
  },
} as const

/** Longer texts about a malformed body are cut: it may have hundreds of unknown fields. */
const detailLengthMax = 1_000

/** What reads an address checks it, and says more of what is wrong. */
const formats = { ipv4: true, ipv6: true } as const
const ajv = new Ajv({ allErrors: true, formats, strictTypes: false })

/** Makes the reader of bodies with this schema: it returns the value, or what is wrong with it. */
export function bodyReader<T>(schema: object): (body: unknown) => { readonly value: T } | { readonly wrong: string } {
  const isRight = ajv.compile<T>(schema)
  return function readBody(body) {
    if (isRight(body)) return { value: body }
    return { wrong: ajv.errorsText(isRight.errors, { dataVar: 'body' }).slice(0, detailLengthMax) }
  }
}

/** Reads the body of one check. */
export const readCheck = bodyReader<CheckBody>(checkSchema)
/** The checks of a batch are read one by one: a malformed one does not spoil the others. */
export const readBatch = bodyReader<{ readonly checks: readonly unknown[]; readonly headers?: boolean }>({
  ...batchSchema,
  properties: { ...batchSchema.properties, checks: { ...batchSchema.properties.checks, items: {} } },
})

/** Options of a route: the schema is for readers of /openapi.json, and a `bodyReader` reads the body. */
export const checkRoute = (body: object, onRequest: CallerAuthorizer) => ({
  schema: { body },
  onRequest,
  validatorCompiler: () => (value: unknown) => ({ value }),
})
