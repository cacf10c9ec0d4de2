import type { Key } from '@weir/api/access.ts'
import {
  deleteEntity,
  type Entity,
  type EntityChange,
  type Issue,
  type JsonValue,
  keyBody,
  putEntity,
} from '@weir/policy/entities.ts'
import { defaultKeyId, keysPerSubjectMax } from '@weir/policy/reader/read-keys.ts'
import type { PolicyState } from '@weir/policy/state/policy-state.ts'

/**
 * When a revoked key has ended: before any clock. It stays as such an entity where it might be in a policy file too, so
 * that applying the file again does not bring it back to life.
 */
const revokedAtMs = 0

/** With more keys than this, a subject's expired ones go with the next new one. A policy allows 100. */
const keysKept = 50

/** Returns the facts of a key other than its hash. */
export function keyFacts({ name, body, issue }: Entity): Key {
  const { id, subject, expires } = body
  return {
    id: typeof id === 'string' ? id : defaultKeyId(name),
    subject: typeof subject === 'string' ? subject : '',
    expires: typeof expires === 'string' ? expires : null,
    prefix: issue?.prefix ?? null,
    created: issue?.at ?? null,
  }
}

/** Undefined for a key without an end. */
function endOf(entity: Entity): number | undefined {
  const { expires } = keyFacts(entity)
  return expires === null ? undefined : Date.parse(expires)
}

/** Returns whether a key was revoked; it stays in the policy so that no file brings it back. */
export const isRevoked = (entity: Entity): boolean => endOf(entity) === revokedAtMs

/** Finds the key of this id; a revoked key is not found. */
export function findKey(state: PolicyState, id: string): Entity | undefined {
  const sha256 = state.keyOfId(id)
  const key = sha256 === undefined ? undefined : state.get('key', sha256)
  return key === undefined || isRevoked(key) ? undefined : key
}

/** Makes a key of the admin API, whose id is made of its hash where none is given. */
export function newKey(facts: {
  readonly sha256: string
  readonly subject: string
  readonly id: string | undefined
  readonly expiresAtMs: number | undefined
  readonly issue: Issue
  /** Its own sizes of limits, as in the body of a key. */
  readonly limits: JsonValue | undefined
}): Entity {
  const { sha256, subject, id = defaultKeyId(sha256), expiresAtMs, issue, limits } = facts
  return {
    kind: 'key',
    name: sha256,
    origin: 'admin',
    position: undefined,
    body: keyBody({ subject, id, expiresAtMs, limits }),
    issue,
  }
}

/** Returns the key with this end, or with its own end if that is earlier. It belongs to the admin API from then on. */
export function keyUntil(key: Entity, atMs: number): Entity {
  const expiresAtMs = Math.min(atMs, endOf(key) ?? atMs)
  return { ...key, origin: 'admin', body: keyBody({ ...keyFacts(key), expiresAtMs, limits: key.body.limits }) }
}

/**
 * Ends a key immediately. A key that only this API knows is deleted; one that a file has or had stays, revoked.
 */
export function revokedKey(key: Entity): EntityChange {
  const isOnlyHere = key.origin === 'admin' && endOf(key) === undefined
  return isOnlyHere ? deleteEntity('key', key.name) : putEntity(keyUntil(key, revokedAtMs))
}

/**
 * Makes room for a new key of a subject with very many, so that years of rotation stay within a policy's bound: deletes
 * the expired ones. A revoked one stays, because a file might bring it back; it goes only where there is no room else.
 */
export function endedKeys(state: PolicyState, subject: string, nowMs: number): EntityChange[] {
  const keys = state.keysOf(subject)
  if (keys.length <= keysKept) return []
  const ended = keys.flatMap((sha256) => {
    const key = state.get('key', sha256)
    const endMs = key === undefined ? undefined : endOf(key)
    return endMs !== undefined && endMs <= nowMs ? [{ sha256, isRevoked: endMs === revokedAtMs }] : []
  })
  const expired = ended.filter((one) => !one.isRevoked)
  const surplus = Math.max(0, keys.length - expired.length + 1 - keysPerSubjectMax)
  const revoked = ended.filter((one) => one.isRevoked).slice(0, surplus)
  return [...expired, ...revoked].map(({ sha256 }) => deleteEntity('key', sha256))
}
