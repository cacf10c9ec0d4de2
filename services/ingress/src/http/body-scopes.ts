import type { Limit } from '@weir/core/limits/limit.ts'
import type { Policy, Route, Subject } from '@weir/policy/policy.ts'
import { badRequest } from '@weir/runtime/problem.ts'
import { isAmbiguousAt, type JsonBody, readBodyBytesMax, valueAt } from './json-body.ts'
import { namesOf } from './named-scopes.ts'

/** Values of a body by their pointers. */
export type BodyValues = ReadonlyMap<string, unknown>

type ResolveLimits = (subject: Subject, route: Route) => readonly Limit[]

/**
 * Finds the pointers that the limits of a request count by; undefined for none, which most policies have. Bodies are
 * read for no other request.
 */
export function createBodyPointers(
  policy: Pick<Policy, 'limits'>,
  resolveLimits: ResolveLimits,
): (subject: Subject, route: Route) => readonly string[] | undefined {
  if (namesOf(policy, 'body').length === 0) return () => undefined
  // Equal limits are one array.
  const known = new WeakMap<readonly Limit[], readonly string[]>()
  return function bodyPointers(subject, route) {
    const limits = resolveLimits(subject, route)
    const pointers = known.get(limits) ?? pointersOf(limits)
    known.set(limits, pointers)
    return pointers.length === 0 ? undefined : pointers
  }
}

const pointersOf = (limits: readonly Limit[]) => {
  const parts = limits.flatMap(({ by }) => by)
  return [...new Set(parts.flatMap((part) => (part.kind === 'body' ? [part.name] : [])))]
}

/** The values of a body that can be read in one way only; of another one there are none. */
export const valuesOfBody = (body: JsonBody | undefined, pointers: readonly string[]): BodyValues =>
  new Map(
    pointers.flatMap((pointer) =>
      body === undefined || isAmbiguousAt(body, pointer) ? [] : [[pointer, valueAt(body.value, pointer)]],
    ),
  )

/** The values of a body that its reader has parsed. */
export const valuesOfJson = (value: unknown, pointers: readonly string[]): BodyValues =>
  new Map(pointers.map((pointer) => [pointer, valueAt(value, pointer)]))

/** Whether a body is one that limits count by: what says that it is no JSON is not read. */
export function mayBeJson(contentType = ''): boolean {
  const [type = ''] = contentType.split(';', 1)
  return type === '' || /[/+]json\s*$/i.test(type)
}

const counted = 'A limit on this request reads its JSON body'

/** The problems of a body that could not be counted by, and only the upstream could read. */
export const countedBodyProblems = {
  encoded: badRequest(`${counted}, which must not have a Content-Encoding.`, 415),
  long: badRequest(`${counted}, which must not exceed ${readBodyBytesMax} bytes.`, 413),
}
