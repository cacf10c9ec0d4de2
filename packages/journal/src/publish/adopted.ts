import type { KafkaLog } from '@weir/kafka/connect.ts'
import type { CrashPoint } from '@weir/runtime/crash-point.ts'
import { adoptDead, adoptedIn, type HeldDirectory, removeDirectory } from '../directory/directory.ts'
import { findWrittenCorrections, type WrittenCorrection } from '../find-corrections.ts'
import { Outbox } from './outbox.ts'
import type { Publisher } from './publisher.ts'

/** Dead processes are looked for so often. */
const lookEveryMs = 10_000

/** Of each journal of a dead process; below that of the own, which is in a hurry. */
const windowBytes = 4 * 1024 * 1024

/** Sent at a time; more would only take memory from each other. */
const openMax = 4

interface AdoptedOptions {
  readonly base: string
  readonly into: Pick<HeldDirectory, 'journal' | 'path'>
  readonly publisher: Pick<Publisher, 'add' | 'remove'>
  readonly log: KafkaLog
  readonly crash: CrashPoint
  readonly onCorrections: (corrections: readonly WrittenCorrection[]) => void
}

/**
 * Journals of dead processes, which this one takes over and brings to their end. Of each, first the corrections are read and told,
 * while the dead process may owe Redis the word that they are safe: once it is sent, nothing of it is left to be read. All that were
 * taken over are read at once, also those that wait for their turn to be sent.
 */
export class Adopted {
  readonly #options: AdoptedOptions
  /** Paths of those whose corrections were told by this thread: only they are sent. */
  readonly #told = new Set<string>()
  readonly #open = new Map<string, Outbox>()
  #nextLookMs = Number.NEGATIVE_INFINITY
  #isLooking = false
  #isEnding = false

  constructor(options: AdoptedOptions) {
    this.#options = options
  }

  /** Bytes on disk of those that are being sent. */
  get bytes(): number {
    return [...this.#open.values()].reduce((sum, { reader }) => sum + reader.bytes, 0)
  }

  get count(): number {
    return this.#open.size
  }

  /** To be called now and then, by a clock that is never set back. */
  tick(nowMs: number): void {
    if (nowMs >= this.#nextLookMs && !this.#isLooking && !this.#isEnding) void this.#look(nowMs)
    for (const [path, outbox] of this.#open) {
      try {
        this.#advance(path, outbox, nowMs)
      } catch (error) {
        // The others go on; this one is opened again at the next look.
        this.#forget(path, outbox)
        this.#options.log.error({ path, reason: String(error) }, 'the journal of a dead process cannot be sent on')
      }
    }
  }

  /** The process stops, and may not hear of corrections any more: what is not being sent yet waits for the next one. */
  takeNoMore(): void {
    this.#isEnding = true
  }

  #forget(path: string, outbox: Outbox): void {
    this.#options.publisher.remove(outbox)
    this.#open.delete(path)
  }

  async #look(nowMs: number): Promise<void> {
    this.#isLooking = true
    this.#nextLookMs = nowMs + lookEveryMs
    try {
      const taken = await adoptDead(this.#options.base, this.#options.into, this.#options.crash)
      if (taken.length > 0) this.#options.log.info({ journals: taken.length }, 'took over journals of dead processes')
    } catch (error) {
      this.#options.log.error({ reason: String(error) }, 'journals of dead processes cannot be taken over')
    }
    // Those that were taken over before are sent, whatever is wrong with others.
    try {
      await this.#tellCorrections()
      this.#openNext()
    } catch (error) {
      this.#options.log.error({ reason: String(error) }, 'journals that were taken over cannot be read')
    } finally {
      this.#isLooking = false
    }
  }

  /** Also of those that the thread before this one took over, and may have died before it read them. */
  async #tellCorrections(): Promise<void> {
    for (const path of adoptedIn(this.#options.into.path)) {
      if (this.#told.has(path)) continue
      const corrections = await findWrittenCorrections(path)
      if (this.#isEnding) return
      if (corrections.length > 0) this.#options.onCorrections(corrections)
      this.#told.add(path)
    }
  }

  #openNext(): void {
    for (const path of adoptedIn(this.#options.into.path)) {
      if (this.#open.size >= openMax || this.#isEnding) return
      if (this.#open.has(path) || !this.#told.has(path)) continue
      try {
        const outbox = new Outbox({ path, windowBytes, log: this.#options.log, crash: this.#options.crash })
        this.#open.set(path, outbox)
        this.#options.publisher.add(outbox)
      } catch (error) {
        this.#options.log.error({ path, reason: String(error) }, 'the journal of a dead process cannot be read')
      }
    }
  }

  #advance(path: string, outbox: Outbox, nowMs: number): void {
    outbox.fill(nowMs)
    if (!outbox.reader.isDrained) return
    if (!outbox.isEnding) outbox.queueMarks(Date.now(), true)
    if (!outbox.isEmpty) return
    this.#forget(path, outbox)
    outbox.close()
    this.#options.crash('adopted_sent')
    removeDirectory(path, this.#options.crash)
    this.#told.delete(path)
    this.#options.log.info({ journal: outbox.reader.journal }, 'sent the journal of a dead process to its end')
    this.#openNext()
  }

  save(): void {
    for (const outbox of this.#open.values()) outbox.save()
  }

  close(): void {
    for (const outbox of this.#open.values()) outbox.close()
  }
}
