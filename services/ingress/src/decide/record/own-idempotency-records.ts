import type { RecordClaim } from '@weir/core/limits/limit-store.ts'
import type { IdempotencyRecords } from '../ports.ts'

/** As many as are repeated within minutes by one test or one small process. */
const idsMax = 10_000

/** Knows the records of this process alone. */
export class OwnIdempotencyRecords implements IdempotencyRecords {
  readonly #recordIds = new Map<string, string>()

  mark(_subject: string, admissionId: string, recordId: string): void {
    const [oldest] = this.#recordIds.keys()
    if (this.#recordIds.size >= idsMax && oldest !== undefined) this.#recordIds.delete(oldest)
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
