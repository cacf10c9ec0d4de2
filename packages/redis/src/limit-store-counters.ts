import { buckets, Histogram } from '@weir/runtime/histogram.ts'

/** Up to `requestsPerCallMax`. */
const callSizes = [1, 2, 4, 8, 16, 32]

/** A call that Redis refused. */
interface RefusedCall {
  readonly message: string
  /** On the monotonic clock. */
  readonly atMs: number
}

/** Codes are Redis's own and few, but what stands before a reply is not ours to bound. */
const codesMax = 64

/** The counts of one store while it counts, since its start. */
export class StoreCounts {
  /** Of each call that was answered, from its sending on, in seconds. */
  readonly callDuration = new Histogram(buckets.decision)
  /** Requests in a call. */
  readonly callSize = new Histogram(callSizes)
  /** Replies that came after their requests had been answered without them. */
  lateReplies = 0
  /** Charges of such replies that were refunded, because their requests had been denied. */
  lateRefunds = 0
  /** Of those, the ones that no longer counted, or that Redis did not answer. */
  lateRefundsLost = 0
  /** Limits that started over although their span had not ended: a clock was set back, or a limit shortened. */
  rebased = 0
  /** The last that Redis refused for a reason of its own, or answered unreadably; a connection's end is none. */
  refused: RefusedCall | undefined
  /** Failed calls by Redis's error code; `NOT_SENT`, `CONNECTION` without an answer, `REPLY` for an unreadable one. */
  readonly scriptErrors: Record<string, number> = {}

  countError(code: string, error: unknown): void {
    const known = code in this.scriptErrors || Object.keys(this.scriptErrors).length < codesMax ? code : 'ERR'
    this.scriptErrors[known] = (this.scriptErrors[known] ?? 0) + 1
    if (error instanceof Error && code !== 'CONNECTION' && code !== 'NOT_SENT') {
      this.refused = { message: error.message, atMs: performance.now() }
    }
  }
}
