import { costMax } from '@weir/core/limits/limit-store.ts'
import { Ajv, type ValidateFunction } from 'ajv'

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
  readonly idempotency_key?: string
  readonly settle?: string
  readonly wait?: string
}

/** Checks of one batch at most: four calls of the decision script, and an answer of some 50 kB. */
const batchChecksMax = 100

export const checkSchema = {
  type: 'object',
  additionalProperties: false,
  properties: {
    subject: { type: 'string', minLength: 1, maxLength: 256, description: 'Who is checked; or give key.' },
    key: { type: 'string', minLength: 1, maxLength: 256, description: 'An API key of who is checked.' },
    ip: {
      type: 'string',
      maxLength: 64,
      description:
        "IPv4 or IPv6 address; without, limits by address do not apply. Only with a token: a subject's own credential asks from its connection's.",
    },
    route: { type: 'string', maxLength: 2_048, description: 'A path, or a method and a path: POST /v1/search.' },
    method: { type: 'string', maxLength: 32, pattern: '^[A-Za-z-]*$' },
    cost: {
      ...{ type: 'integer', minimum: 0, maximum: costMax },
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
    idempotency_key: {
      ...{ type: 'string', minLength: 1, maxLength: 256 },
      description: 'Within its subject: an admission is repeated for minutes, and charged once.',
    },
    settle: {
      ...{ type: 'string', maxLength: 20, pattern: '^0*[1-9][0-9]*(ms|s|m|h|d)$' },
      description: 'For so long, 24h at most, the cost can be corrected by /v1/settle: 15m.',
    },
    wait: {
      ...{ type: 'string', maxLength: 20, pattern: '^0*[1-9][0-9]*(ms|s|m|h|d)$' },
      description:
        'Where limits refuse it now, it waits so long for room, 60s at most: 5s. Not in a batch, and never a peek.',
    },
  },
} as const

export const batchSchema = {
  type: 'object',
  additionalProperties: false,
  required: ['checks'],
  properties: { checks: { type: 'array', minItems: 1, maxItems: batchChecksMax, items: checkSchema } },
} as const

const ajv = new Ajv({ allErrors: true })
const isCheck = ajv.compile<CheckBody>(checkSchema)
/** The checks themselves are looked at one by one: a malformed one does not take the others with it. */
const isBatch = ajv.compile<{ readonly checks: readonly unknown[] }>({
  ...batchSchema,
  properties: { checks: { ...batchSchema.properties.checks, items: {} } },
})

/** Of a malformed check so much is said at most: it may have hundreds of unknown fields. */
const detailLengthMax = 1_000

type Read<T> = { readonly value: T } | { readonly wrong: string }

function reader<T>(isRight: ValidateFunction<T>): (body: unknown) => Read<T> {
  return function read(body: unknown): Read<T> {
    if (isRight(body)) return { value: body }
    return { wrong: ajv.errorsText(isRight.errors, { dataVar: 'body' }).slice(0, detailLengthMax) }
  }
}

export const readCheck = reader(isCheck)
export const readBatch = reader(isBatch)

/** The schema is there to be read; bodies are read by `readCheck`, whose words are ours. */
export const asItComes = () => (value: unknown) => ({ value })
