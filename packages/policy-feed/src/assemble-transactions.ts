import { type ChangeRecordV1, parsePolicyRecord } from '@weir/contracts/policy.v1.ts'
import type { LogRecord } from '@weir/kafka/partition-log.ts'
import type { EntityChange } from '@weir/policy/entities.ts'

/** A change's audit record, as it stands in the topic. */
export interface AuditRecord extends ChangeRecordV1 {
  /** A UUID version 7. */
  readonly id: string
}

/**
 * Where a change ends in the topic. The id identifies the topic too: a topic that was deleted and created again does
 * not have it there.
 */
export interface PolicyCheckpoint {
  readonly offset: bigint
  readonly id: string
}

/** Everything between one audit record and the next, which ends it. */
export interface PolicyTransaction {
  /** Each entity once, as it is to be in the end. */
  readonly changes: readonly EntityChange[]
  readonly resets: readonly string[]
  readonly audit: AuditRecord
  readonly checkpoint: PolicyCheckpoint
}

/**
 * Whether a change stands between this one and the one that its writer knew as the last. Such a change was planned on a
 * policy that is no more, and no reader takes it over. `previous` is the change before it in the topic. The same change
 * stored twice in a row is one change. Old changes may be gone from the topic: without them this one is not overtaken.
 */
export function isOvertaken(
  { audit: { id, after } }: PolicyTransaction,
  previous: PolicyCheckpoint | undefined,
): boolean {
  if (after === undefined || previous === undefined) return false
  return previous.id !== id && previous.id !== after.id && previous.offset > BigInt(after.offset)
}

/** The key of an entity's record in the topic. */
export const entityKey = ({ kind, name }: { readonly kind: string; readonly name: string }): string => `${kind}/${name}`

/** Holds back what a change consists of until it is whole; at most each entity of the topic once. */
export class TransactionAssembler {
  readonly #onUnreadable: (offset: bigint, reason: string) => void
  readonly #changes = new Map<string, EntityChange>()
  readonly #resets = new Set<string>()

  constructor(onUnreadable: (offset: bigint, reason: string) => void) {
    this.#onUnreadable = onUnreadable
  }

  /** The change that this record completes. */
  add({
    offset,
    key,
    value,
    fault,
  }: Pick<LogRecord, 'offset' | 'key' | 'value' | 'fault'>): PolicyTransaction | undefined {
    if (fault !== undefined) return void this.#onUnreadable(offset, fault)
    const parsed = parsePolicyRecord(key, value)
    if (parsed.kind === 'entity') {
      // Deleted first, so that a repeated one takes its later place.
      const at = entityKey(parsed.change)
      this.#changes.delete(at)
      this.#changes.set(at, parsed.change)
    } else if (parsed.kind === 'reset') this.#resets.add(parsed.subject)
    else if (parsed.kind === 'unreadable') this.#onUnreadable(offset, parsed.reason)
    else if (parsed.kind === 'change') {
      const { id, change } = parsed
      const [changes, resets] = [[...this.#changes.values()], [...this.#resets]]
      this.forget()
      return { changes, resets, audit: { id, ...change }, checkpoint: { offset, id } }
    }
    return undefined
  }

  /** What was gathered of a change that is not whole yet comes once more. */
  forget(): void {
    this.#changes.clear()
    this.#resets.clear()
  }
}
