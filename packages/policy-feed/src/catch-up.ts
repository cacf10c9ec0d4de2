import { encodeEntityChange, parsePolicyRecord } from '@weir/contracts/policy.v1.ts'
import type { Entity, EntityChange, PolicyFault } from '@weir/policy/entities.ts'
import { PolicyState } from '@weir/policy/state/policy-state.ts'
import {
  type AuditRecord,
  entityKey,
  isOvertaken,
  type PolicyCheckpoint,
  type PolicyTransaction,
} from './assemble-transactions.ts'

/** An entity without its content. */
export type EntityName = Pick<EntityChange, 'kind' | 'name'>

/** A change that was tried by itself. */
export interface TriedChange {
  readonly change: PolicyTransaction
  /** None for one that was taken over. */
  readonly problems: readonly PolicyFault[]
}

/** What the whole topic amounts to. */
export type CaughtUp =
  | {
      readonly kind: 'caught-up'
      readonly state: PolicyState
      /** Of the last change; undefined for a topic without any. */
      readonly checkpoint: PolicyCheckpoint | undefined
      readonly leftOut: readonly PolicyFault[]
      /** The changes at the end, if they were tried one by one. */
      readonly tried: readonly TriedChange[]
      /** What overtaken changes have written last, and no change since. */
      readonly overtaken: readonly EntityName[]
    }
  /** No part of it makes a policy. */
  | { readonly kind: 'unusable'; readonly problems: readonly PolicyFault[] }

/** Of a topic that does not compile as a whole, so many changes at its end are tried one by one. */
const recentMax = 20

/**
 * The whole topic, gathered before any of it is taken over: what was compacted may refer to what comes much later. Kept
 * as text, because a million subjects with their keys would be gigabytes as objects, if only for seconds.
 */
export class CatchUp {
  readonly #settled = new Map<string, string>()
  readonly #recent: PolicyTransaction[] = []
  #checkpoint: PolicyCheckpoint | undefined
  /** Of all changes, in their order; filled by a caller that needs them. */
  readonly audits: AuditRecord[] = []
  readonly #overtaken = new Map<string, EntityName>()
  /** Since it was finished last. */
  isChanged = true

  /** Gives whether the change counts. */
  add(change: PolicyTransaction): boolean {
    this.isChanged = true
    const counts = !isOvertaken(change, this.#checkpoint)
    this.#checkpoint = change.checkpoint
    for (const { kind, name } of change.changes) {
      if (counts) this.#overtaken.delete(entityKey({ kind, name }))
      else this.#overtaken.set(entityKey({ kind, name }), { kind, name })
    }
    if (counts) this.#settle(change)
    return counts
  }

  #settle(change: PolicyTransaction): void {
    this.#recent.push(change)
    const oldest = this.#recent.length > recentMax ? this.#recent.shift() : undefined
    for (const one of oldest?.changes ?? []) {
      const { key, value } = encodeEntityChange(one)
      if (value === null) this.#settled.delete(key)
      else this.#settled.set(key, value)
    }
  }

  /** May be asked again after more changes. */
  finish(): CaughtUp {
    this.isChanged = false
    const state = new PolicyState()
    const loaded = state.load(this.#all())
    const checkpoint = this.#checkpoint
    const steps = loaded.kind === 'loaded' && loaded.leftOut.length === 0 ? undefined : this.#stepByStep()
    if (loaded.kind === 'loaded') {
      if (steps !== undefined && steps.leftOut.length < loaded.leftOut.length) return steps
      const overtaken = [...this.#overtaken.values()]
      return { kind: 'caught-up', state, checkpoint, leftOut: loaded.leftOut, tried: [], overtaken }
    }
    if (steps !== undefined) return steps
    return { kind: 'unusable', problems: loaded.problems }
  }

  /** As a process that was there all the time has done it: what does not fit is left out. */
  #stepByStep(): Extract<CaughtUp, { kind: 'caught-up' }> | undefined {
    const state = new PolicyState()
    const loaded = state.load(this.#settledEntities(new Set()))
    if (loaded.kind === 'problems') return undefined
    const tried = this.#recent.map((change): TriedChange => {
      const applied = state.apply(change.changes)
      return { change, problems: applied.kind === 'problems' ? applied.problems : [] }
    })
    // All of them wrong, and nothing before: that is no policy.
    if (tried.every(({ problems }) => problems.length > 0) && this.#settled.size === 0) return undefined
    const overtaken = [...this.#overtaken.values()]
    return { kind: 'caught-up', state, checkpoint: this.#checkpoint, leftOut: loaded.leftOut, tried, overtaken }
  }

  *#all(): Iterable<Entity> {
    const recent = new Map(this.#recent.flatMap(({ changes }) => changes.map((one) => [entityKey(one), one.entity])))
    yield* this.#settledEntities(recent)
    for (const entity of recent.values()) if (entity !== undefined) yield entity
  }

  *#settledEntities(except: { has(key: string): boolean }): Iterable<Entity> {
    for (const [key, value] of this.#settled) {
      if (except.has(key)) continue
      const parsed = parsePolicyRecord(Buffer.from(key), Buffer.from(value))
      if (parsed.kind === 'entity' && parsed.change.entity !== undefined) yield parsed.change.entity
    }
  }
}
