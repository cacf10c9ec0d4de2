import { type PolicyMessage, parsePolicyRecord } from '@weir/contracts/policy.v1.ts'
import { WeirError } from '@weir/core/errors.ts'
import type { EntityChange } from '@weir/policy/entities.ts'
import { PolicyState } from '@weir/policy/state/policy-state.ts'
import type { AuditLog } from '@weir/policy-changes/audit-log.ts'
import type { ChangeSource, PolicyReplica } from '@weir/policy-changes/change-store.ts'

/** A policy topic that is an array: tests use it instead of Kafka. */
export interface MemoryPolicyStore extends PolicyReplica {
  readonly publish: ChangeSource['publish']
  readonly state: PolicyState
  readonly published: readonly (readonly PolicyMessage[])[]
  /** While it is down it accepts nothing. */
  isAway: boolean
  /** While it lags, no accepted record is read back. */
  isBehind: boolean
  /** It accepts nothing before this resolves. */
  held: Promise<unknown>
}

/** Makes a store that reads every accepted record back immediately. */
export function createMemoryPolicyStore(audit: AuditLog): MemoryPolicyStore {
  const state = new PolicyState()
  const published: (readonly PolicyMessage[])[] = []
  const takeOver = (messages: readonly PolicyMessage[]) => {
    const changes: EntityChange[] = []
    for (const { key, value } of messages) {
      const parsed = parsePolicyRecord(Buffer.from(key), value === null ? null : Buffer.from(value))
      if (parsed.kind === 'unreadable') throw new Error(`${key}: ${parsed.reason}`)
      if (parsed.kind === 'entity') changes.push(parsed.change)
      if (parsed.kind === 'change') audit.add({ id: parsed.id, ...parsed.change })
    }
    const applied = state.apply(changes)
    if (applied.kind === 'problems') throw new Error(JSON.stringify(applied.problems))
  }
  const store: MemoryPolicyStore = {
    state,
    published,
    isAway: false,
    isBehind: false,
    held: Promise.resolve(),
    async publish(messages) {
      await store.held
      if (store.isAway) throw new WeirError('KAFKA_UNAVAILABLE', 'Kafka does not answer.')
      published.push(messages)
      if (!store.isBehind) takeOver(messages)
      return BigInt(published.length)
    },
    reached: async () => !store.isBehind,
    problemsOf: () => undefined,
    checkpoint: undefined,
    stale: [],
  }
  return store
}
