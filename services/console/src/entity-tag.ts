import { hash } from 'node:crypto'
import { canonicalJson, type Entity } from '@weir/policy/entities.ts'

/** Digits of the hash: no two versions of an entity meet by chance. */
const digits = 32

/** Returns the ETag of an entity: equal for equal bodies, also of different callers. */
export const entityTag = ({ body }: Entity): string =>
  `"${hash('sha256', canonicalJson(body), 'hex').slice(0, digits)}"`

/** The conditions of a request, as its headers have them. */
export interface Conditions {
  readonly ifMatch: string | undefined
  readonly ifNoneMatch: string | undefined
}

const lists = (header: string, tag: string | undefined) =>
  tag !== undefined &&
  (header.trim() === '*' || header.split(',').some((one) => one.trim().replace(/^W\//, '') === tag))

/** Says which condition of a request does not hold; undefined if all do. */
export function brokenCondition(entity: Entity | undefined, { ifMatch, ifNoneMatch }: Conditions): string | undefined {
  const tag = entity === undefined ? undefined : entityTag(entity)
  if (ifMatch !== undefined && !lists(ifMatch, tag)) {
    return tag === undefined ? 'It is not there any more.' : `Somebody has changed it: its ETag is ${tag} by now.`
  }
  return ifNoneMatch !== undefined && lists(ifNoneMatch, tag) ? `It is there, with the ETag ${tag}.` : undefined
}
