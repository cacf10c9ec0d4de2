import { setTimeout as delay } from 'node:timers/promises'
import { encodeKeyPart } from '@weir/core/key-encoding.ts'
import type { RecordClaim } from '@weir/core/limits/limit-store.ts'
import type { Redis } from 'ioredis'
import type { ClusterConnection } from './cluster-connection.ts'
import { serverFinder } from './limit-connection.ts'

/*
 * The marker of an idempotency key is written when an admission is charged, and the record after that: the process that
 * charges may die in between, or find its journal full. So the first process to have recorded writes the record's id
 * here, in addition to the marker. A repeat that finds none waits for as long as the first may take, and then becomes
 * the one to record.
 *
 * A process whose disk stalls over a record holds the key meanwhile, because the record may still be written. A claim
 * expires by itself, so that after the death of its process the next repeat can claim. What Redis loses here makes a
 * repeat leave a record of its own: the admission is then counted once more, and never once too few.
 */

/**
 * Longer than the marker of an idempotency key is kept, in every case; lua/lib/tally.lua counts the two as one for this
 * time.
 */
const keptMs = 11 * 60_000
/**
 * How long a process may take after its decision to record or to hold: half a second for its disk, the rest for a busy
 * event loop.
 */
const recordingMs = 750
/** How long a stalled disk may keep other processes from recording; a process that dies in a stall does so too. */
const heldMs = 30_000
/** A repeat that claims has its decision already. */
const claimMs = 2 * recordingMs
const askEveryMs = 20
const claimed = 'claimed'

interface IdempotencyRecordsOptions {
  /** Of role `limiter`, which fails immediately while Redis is down. The caller closes it. */
  readonly redis: Redis | ClusterConnection
  /** The longest that a process waits for a decision. */
  readonly deadlineMs: number
}

/** Knows which admissions under idempotency keys have a record, for all processes that share a Redis. */
export class RedisIdempotencyRecords {
  readonly #serverOf: ReturnType<typeof serverFinder>
  readonly #waitMs: number
  #marksLost = 0

  constructor({ redis, deadlineMs }: IdempotencyRecordsOptions) {
    this.#serverOf = serverFinder(redis)
    this.#waitMs = deadlineMs + recordingMs
  }

  /** Marks that Redis did not take. */
  get marksLost(): number {
    return this.#marksLost
  }

  /** The admission has its record. Nothing waits for this; where it is lost, a repeat leaves a record of its own. */
  mark(subject: string, admissionId: string, recordId: string): void {
    const key = recordedKey(subject, admissionId)
    const set = async () => await this.#serverOf(key).set(key, recordId, 'PX', keptMs)
    set().catch(() => {
      this.#marksLost += 1
    })
  }

  /**
   * A stalled disk may still write the record: no other process is to write one for `heldMs`. Ends with `mark`, or with
   * a call of the returned function, once the record is certain never to be written.
   */
  hold(subject: string, admissionId: string): () => void {
    const key = recordedKey(subject, admissionId)
    const held = this.#claim(key, heldMs).catch(() => false)
    const release = async () => (await held) && this.#serverOf(key).pexpire(key, 1)
    // A hold that Redis is not asked to end expires by itself.
    return () => void release().catch(() => undefined)
  }

  /** Never rejects. Takes a moment while another process may still be recording it. */
  async claim(subject: string, admissionId: string): Promise<RecordClaim> {
    try {
      return await this.#waitOrClaim(recordedKey(subject, admissionId))
    } catch {
      // The caller is to come back, when Redis may be there again.
      return { kind: 'unknown' }
    }
  }

  async #waitOrClaim(key: string): Promise<RecordClaim> {
    const endMs = performance.now() + this.#waitMs
    while (performance.now() < endMs) {
      const found = await this.#recordOf(key)
      if (found !== undefined) return found
      await delay(askEveryMs)
    }
    if (await this.#claim(key, claimMs)) return { kind: 'claimed' }
    return (await this.#recordOf(key)) ?? { kind: 'unknown' }
  }

  async #recordOf(key: string): Promise<RecordClaim | undefined> {
    const found = await this.#serverOf(key).get(key)
    return found === null || found === claimed ? undefined : { kind: 'recorded', recordId: found }
  }

  async #claim(key: string, ms: number): Promise<boolean> {
    return (await this.#serverOf(key).set(key, claimed, 'PX', ms, 'NX')) === 'OK'
  }
}

/** Limits' names do not begin with `_`. */
const recordedKey = (subject: string, admissionId: string) =>
  `weir:1:{${encodeKeyPart(subject)}}:_recorded:${encodeKeyPart(admissionId)}`
