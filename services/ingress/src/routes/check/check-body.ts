import { batchBody, checkBody } from '@weir/api/check.ts'
import { closed, enforced, list, type Of, type Schema } from '@weir/api/schema.ts'
import { Type } from '@weir/api/type.ts'
import { costMax } from '@weir/core/limits/limit-store.ts'
import type { Policy } from '@weir/policy/policy.ts'
import { badRequest, type Problem } from '@weir/runtime/problem.ts'
import { Ajv } from 'ajv'
import type { CallerAuthorizer } from './authorize-caller.ts'

/** Longer texts about a malformed body are cut: it may have hundreds of unknown fields. */
const detailLengthMax = 1_000

/** What reads an address checks it, and says more of what is wrong. */
const formats = { ipv4: true, ipv6: true } as const
const ajv = new Ajv({ allErrors: true, formats, strictTypes: false })

/** Makes the reader of bodies with this schema: it returns the value, or what is wrong with it. */
export function bodyReader<Body extends Schema>(
  schema: Body,
): (body: unknown) => { readonly value: Of<Body> } | { readonly wrong: string } {
  const isRight = ajv.compile<Of<Body>>(enforced(schema) as object)
  return function readBody(body) {
    if (isRight(body)) return { value: body }
    return { wrong: ajv.errorsText(isRight.errors, { dataVar: 'body' }).slice(0, detailLengthMax) }
  }
}

/** Returns the problem of a unit with a quantity that only money can have: amounts are whole nano-units. */
export function unitsProblem(
  { rateCards }: Pick<Policy, 'rateCards'>,
  units: Readonly<Record<string, number>> = {},
): Problem | undefined {
  const [unit] = Object.entries(units).find(([name, quantity]) => quantity > costMax && !rateCards.has(name)) ?? []
  return unit === undefined ? undefined : badRequest(`units.${unit} must be at most ${costMax}.`)
}

/** Reads the body of one check. */
export const readCheck = bodyReader(checkBody)
const { checks, headers } = batchBody.properties
/** The checks of a batch are read one by one: a malformed one does not spoil the others. */
export const readBatch = bodyReader(closed({ checks: { ...checks, ...list(Type.Unknown()) }, headers }))

/** Options of a route: the schema is for readers of /openapi.json, and a `bodyReader` reads the body. */
export const checkRoute = (body: Schema, onRequest: CallerAuthorizer) => ({
  schema: { body },
  onRequest,
  validatorCompiler: () => (value: unknown) => ({ value }),
})
