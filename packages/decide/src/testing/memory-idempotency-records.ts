import type { RecordClaim } from '@weir/core/limits/limit-store.ts'
import type { IdempotencyRecords } from '../ports.ts'

/** Knows the records of one process alone: for tests of what asks for them. */
export class MemoryIdempotencyRecords implements IdempotencyRecords {
  readonly #recordIds = new Map<string, string>()

  mark(_subject: string, admissionId: string, recordId: string): void {
    this.#recordIds.set(admissionId, recordId)
  }

  /** Does nothing: `RecordOnce` itself keeps repeats of what its own disk holds apart. */
  hold(): () => void {
    return () => undefined
  }

  async claim(_subject: string, admissionId: string): Promise<RecordClaim> {
    const recordId = this.#recordIds.get(admissionId)
    return recordId === undefined ? { kind: 'claimed' } : { kind: 'recorded', recordId }
  }
}
