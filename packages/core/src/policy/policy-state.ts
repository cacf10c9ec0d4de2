import type { Entity, EntityChange, EntityKind, PolicyFault } from './entities.ts'
import type { Policy } from './policy.ts'

export type LoadedState =
  /** `leftOut` tells of subjects and keys that do not fit the definitions; everything else is in force. */
  | { readonly kind: 'loaded'; readonly policy: Policy; readonly leftOut: readonly PolicyFault[] }
  | { readonly kind: 'problems'; readonly problems: readonly PolicyFault[] }

export type CheckedChange =
  /** `definitionsChange`: not only subjects and keys would change, so that `policy` would be another object. */
  | { readonly kind: 'fine'; readonly definitionsChange: boolean }
  | { readonly kind: 'problems'; readonly problems: readonly PolicyFault[] }

export type AppliedChange =
  | { readonly kind: 'applied'; readonly policy: Policy; readonly definitionsChange: boolean }
  | { readonly kind: 'problems'; readonly problems: readonly PolicyFault[] }

/**
 * A policy as its entities, which are changed one by one. Definitions (all but subjects and keys) are compiled when one of
 * them changes; a million subjects and keys lie packed and become objects when they are asked for.
 */
export interface PolicyState {
  /**
   * The policy of all that is loaded and applied. The same object until a definition changes: its `subjects` and `keys`
   * show every later change of a subject or key at once, with the plans and limits of this policy.
   */
  readonly policy: Policy
  /** Entities of all kinds. */
  readonly size: number
  /** Forgets everything before and takes these; with problems it stays as it was. */
  load(entities: Iterable<Entity>): LoadedState
  /** What `apply` would answer. Changes nothing. */
  check(changes: readonly EntityChange[]): CheckedChange
  /** All of them at once, or none. */
  apply(changes: readonly EntityChange[]): AppliedChange
  get(kind: EntityKind, name: string): Entity | undefined
  /** Definitions in their order, subjects and keys as they were added. Made one by one: a million of them need no memory. */
  list(kind: EntityKind): Iterable<Entity>
  /** At most `limit` of them, by name, from the first after `after`. */
  page(kind: EntityKind, after: string, limit: number): readonly Entity[]
  count(kind: EntityKind): number
  /** SHA-256 of the subject's keys. */
  keysOf(subject: string): readonly string[]
  /** SHA-256 of the key with this id. */
  keyOfId(id: string): string | undefined
}
