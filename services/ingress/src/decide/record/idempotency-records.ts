/** What is known of the record of an admission under an idempotency key. */
export type AdmissionRecord =
  | { readonly kind: 'recorded'; readonly recordId: string }
  /** Nobody has recorded it, and from now on this caller is the one to do so. */
  | { readonly kind: 'ours' }
  /** Somebody may be about to record it, or nobody can be asked. */
  | { readonly kind: 'unknown' }

/**
 * Which admissions under idempotency keys have a record, for all processes that share a Redis. The marker of such a key says
 * that the admission was charged; whoever charged it may have died, or been turned away by a full journal, before it was
 * recorded, and then a repeat must be recorded or nobody would ever count it.
 */
export interface Admissions {
  /** The admission has its record. Not waited for; a mark that is lost makes a repeat leave a record of its own. */
  mark(subject: string, admissionId: string, recordId: string): void
  /**
   * A stalled disk may take the record yet: for half a minute nobody else is to write one. Ends with `mark`, or with what this gives, to
   * be called once it is certain that the disk does not.
   */
  hold(subject: string, admissionId: string): () => void
  /** Never rejects. Takes a moment when another process may still be recording it. */
  claim(subject: string, admissionId: string): Promise<AdmissionRecord>
}

/** As many as are repeated within minutes by one test or one small process. */
const idsMax = 10_000

/** Knows of this process alone. */
export function createOwnAdmissions(): Admissions {
  const recorded = new Map<string, string>()
  return {
    mark(_subject, admissionId, recordId) {
      const [oldest] = recorded.keys()
      if (recorded.size >= idsMax && oldest !== undefined) recorded.delete(oldest)
      recorded.set(admissionId, recordId)
    },
    // Who asks keeps repeats of what its own disk holds apart.
    hold: () => () => undefined,
    async claim(_subject, admissionId) {
      const recordId = recorded.get(admissionId)
      return recordId === undefined ? { kind: 'ours' } : { kind: 'recorded', recordId }
    },
  }
}
