import { adoptedIn, adoptOrphans, type DirectoryLock, removeDirectory } from '../directory/directory.ts'
import { findWrittenCorrections, type WrittenCorrection } from '../find-corrections.ts'
import { JournalSender, type JournalSenderOptions } from './journal-sender.ts'
import type { Publisher } from './publisher.ts'

/** How often journals of dead processes are looked for. */
const pollIntervalMs = 10_000

/** Of each journal of a dead process; below that of the own, which is in a hurry. */
const inFlightBytesMax = 4 * 1024 * 1024

/** Sent at a time; more would only take memory from each other. */
const openMax = 4

interface OrphanJournalsOptions extends Pick<JournalSenderOptions, 'log' | 'crash' | 'onTraced'> {
  readonly base: string
  readonly into: Pick<DirectoryLock, 'journal' | 'path'>
  readonly publisher: Pick<Publisher, 'add' | 'remove'>
  readonly onCorrections: (corrections: readonly WrittenCorrection[]) => void
}

/**
 * Journals of dead processes, which this one takes over and sends to their end. The corrections of a journal are
 * reported before it is sent, because the dead process may not have told Redis that they are safe, and a journal that
 * was sent is removed. All journals that were taken over are read for them together, also those that are sent later.
 */
export class OrphanJournals {
  readonly #options: OrphanJournalsOptions
  /** Paths of those whose corrections this thread has reported: only they are sent. */
  readonly #reported = new Set<string>()
  readonly #open = new Map<string, JournalSender>()
  #nextPollMs = Number.NEGATIVE_INFINITY
  #isPolling = false
  #isEnding = false

  constructor(options: OrphanJournalsOptions) {
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
    if (nowMs >= this.#nextPollMs && !this.#isPolling && !this.#isEnding) void this.#poll(nowMs)
    for (const [path, sender] of this.#open) {
      try {
        this.#advance(path, sender, nowMs)
      } catch (error) {
        // The others go on; this one is opened again at the next poll.
        this.#forget(path, sender)
        this.#options.log.error({ path, reason: String(error) }, 'journal of a dead process not sent')
      }
    }
  }

  /**
   * Called when the process stops, and can handle no corrections any more: journals that are not being sent yet wait
   * for the next process.
   */
  takeNoMore(): void {
    this.#isEnding = true
  }

  #forget(path: string, sender: JournalSender): void {
    this.#options.publisher.remove(sender)
    this.#open.delete(path)
  }

  async #poll(nowMs: number): Promise<void> {
    this.#isPolling = true
    this.#nextPollMs = nowMs + pollIntervalMs
    try {
      const taken = await adoptOrphans(this.#options.base, this.#options.into, this.#options.crash)
      if (taken.length > 0) this.#options.log.info({ journals: taken.length }, 'took over journals of dead processes')
    } catch (error) {
      this.#options.log.error({ reason: String(error) }, 'journals of dead processes not taken over')
    }
    // Those that were taken over before are sent, whatever is wrong with others.
    try {
      await this.#reportCorrections()
      this.#openNext()
    } catch (error) {
      this.#options.log.error({ reason: String(error) }, 'journals taken over cannot be read')
    } finally {
      this.#isPolling = false
    }
  }

  /** Also of those that the thread before this one took over, and may have died before it read them. */
  async #reportCorrections(): Promise<void> {
    for (const path of adoptedIn(this.#options.into.path)) {
      if (this.#reported.has(path)) continue
      const corrections = await findWrittenCorrections(path)
      if (this.#isEnding) return
      if (corrections.length > 0) this.#options.onCorrections(corrections)
      this.#reported.add(path)
    }
  }

  #openNext(): void {
    for (const path of adoptedIn(this.#options.into.path)) {
      if (this.#open.size >= openMax || this.#isEnding) return
      if (this.#open.has(path) || !this.#reported.has(path)) continue
      try {
        const { log, crash, onTraced } = this.#options
        const sender = new JournalSender({ path, inFlightBytesMax, log, crash, onTraced })
        this.#open.set(path, sender)
        this.#options.publisher.add(sender)
      } catch (error) {
        this.#options.log.error({ path, reason: String(error) }, 'journal of a dead process cannot be read')
      }
    }
  }

  #advance(path: string, sender: JournalSender, nowMs: number): void {
    sender.fill(nowMs)
    if (!sender.reader.isDrained) return
    if (!sender.isEnding) sender.queueWatermarks(Date.now(), true)
    if (!sender.isEmpty) return
    this.#forget(path, sender)
    sender.close()
    this.#options.crash('adopted_sent')
    removeDirectory(path, this.#options.crash)
    this.#reported.delete(path)
    this.#options.log.info({ journal: sender.reader.journal }, 'journal of a dead process sent completely')
    this.#openNext()
  }

  save(): void {
    for (const sender of this.#open.values()) sender.save()
  }

  close(): void {
    for (const sender of this.#open.values()) sender.close()
  }
}
