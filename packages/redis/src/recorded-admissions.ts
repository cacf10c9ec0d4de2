import { setTimeout as delay } from 'node:timers/promises'
import { encodeKeyPart } from '@weir/core/key-encoding.ts'
import type { Redis } from 'ioredis'
import type { ClusterConnection } from './cluster-connection.ts'
import { serverFinder } from './limit-connection.ts'

/*
 * Which admissions under idempotency keys have a record, beside the marker of the key. The marker is written when the admission
 * is charged, and the record after that: whoever charges may die in between, or find its journal full. So the first to have
 * recorded writes the record's id here, and a repeat that finds none becomes the one to record, after a while in which the
 * first would have done it.
 *
 * Whose disk stalls over a record, so that nobody knows whether it will stand in the journal, holds the place for it meanwhile.
 * A claim to record lapses by itself, so that who claims and dies is followed by the next repeat. What is lost here (Redis was
 * away, or forgot) makes a repeat leave a record of its own: counted once more, and never once too few.
 */

/** Longer than the marker of an idempotency key is kept, in every case; lua/lib/tally.lua counts the two as one, for so long. */
const keptMs = 11 * 60_000
/** After its decision a process may take this long to record or to hold: its disk gets half a second, and the rest is for a busy event loop. */
const recordingMs = 750
/** For so long a stalled disk may keep a record back from everybody; a process that dies in a stall does so too. */
const heldMs = 30_000
/** A repeat that claims has its decision already. */
const claimMs = 2 * recordingMs
const askEveryMs = 20
const claimed = 'claimed'

/** Structurally the `Admissions` of the ingress. */
export interface RecordedAdmissions {
  mark(subject: string, admissionId: string, recordId: string): void
  hold(subject: string, admissionId: string): () => void
  claim(subject: string, admissionId: string): Promise<AdmissionRecord>
  /** Marks that Redis did not take. */
  readonly marksLost: number
}

type AdmissionRecord =
  | { readonly kind: 'recorded'; readonly recordId: string }
  | { readonly kind: 'ours' }
  | { readonly kind: 'unknown' }

export interface RecordedAdmissionsOptions {
  /** Of role `limiter`, which fails at once while Redis is away. The caller closes it. */
  readonly redis: Redis | ClusterConnection
  /** The longest that a process waits for a decision. */
  readonly deadlineMs: number
}

/** For all processes that share a Redis. */
export function createRecordedAdmissions({ redis, deadlineMs }: RecordedAdmissionsOptions): RecordedAdmissions {
  const serverOf = serverFinder(redis)
  let marksLost = 0

  const recordOf = async (key: string): Promise<AdmissionRecord | undefined> => {
    const found = await serverOf(key).get(key)
    return found === null || found === claimed ? undefined : { kind: 'recorded', recordId: found }
  }

  const ask = async (key: string): Promise<AdmissionRecord> => {
    const endMs = performance.now() + deadlineMs + recordingMs
    while (performance.now() < endMs) {
      const found = await recordOf(key)
      if (found !== undefined) return found
      await delay(askEveryMs)
    }
    if ((await serverOf(key).set(key, claimed, 'PX', claimMs, 'NX')) === 'OK') return { kind: 'ours' }
    return (await recordOf(key)) ?? { kind: 'unknown' }
  }

  return {
    get marksLost() {
      return marksLost
    },
    mark(subject, admissionId, recordId) {
      const key = recordedKey(subject, admissionId)
      const write = async () => serverOf(key).set(key, recordId, 'PX', keptMs)
      write().catch(() => {
        marksLost += 1
      })
    },
    hold(subject, admissionId) {
      const key = recordedKey(subject, admissionId)
      const write = async () => serverOf(key).set(key, claimed, 'PX', heldMs, 'NX')
      const held = write().catch(() => null)
      const release = async () => (await held) === 'OK' && serverOf(key).pexpire(key, 1)
      // What Redis does not hear of ends by itself.
      return () => void release().catch(() => undefined)
    },
    async claim(subject, admissionId) {
      try {
        return await ask(recordedKey(subject, admissionId))
      } catch {
        // Whoever asks is told to come back, when Redis may be there again.
        return { kind: 'unknown' }
      }
    },
  }
}

/** Limits' names do not begin with `_`. */
const recordedKey = (subject: string, admissionId: string) =>
  `weir:1:{${encodeKeyPart(subject)}}:_recorded:${encodeKeyPart(admissionId)}`
