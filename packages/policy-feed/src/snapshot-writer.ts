import type { KafkaLog } from '@weir/kafka/connect.ts'
import type { EntityChange, PolicyFault } from '@weir/policy/entities.ts'
import { PolicyState } from '@weir/policy/state/policy-state.ts'
import type { PolicyCheckpoint } from './assemble-transactions.ts'
import { readSnapshot, renewSnapshot, writeSnapshot } from './snapshot-file.ts'

/** A burst of changes is written once; what a killed process had not written comes from the topic. */
const writeEveryMs = 2_000
/**
 * A million subjects take seconds to write: then it is written so much more seldom that it costs a twentieth of the
 * time.
 */
const restPerWrite = 20
/** How exactly a snapshot knows its age. */
const renewEveryMs = 30_000

/** What a snapshot is made of, as it is at the moment. */
export interface SnapshotSource {
  readonly state: PolicyState
  readonly checkpoint: PolicyCheckpoint
  readonly heardMs: number
}

/** What a start without Kafka begins with. */
export interface LoadedSnapshot extends SnapshotSource {
  /** Parts that do not fit the rest. */
  readonly leftOut: readonly PolicyFault[]
}

/** Keeps a file close behind the policy: soon after a change, and at the stop. One write at a time. */
export class SnapshotWriter {
  readonly #path: string
  readonly #log: KafkaLog
  readonly #held: () => SnapshotSource | undefined
  #timer: NodeJS.Timeout | undefined
  #work: Promise<void> = Promise.resolve()
  #isBehind = false
  /** Taken over during a write. */
  #later: EntityChange[] | undefined
  #renewedMs = 0
  #pauseMs = writeEveryMs
  /** Whether the file holds what is in force, or held it before the last changes. */
  #isThere = false

  constructor(path: string, log: KafkaLog, held: () => SnapshotSource | undefined) {
    this.#path = path
    this.#log = log
    this.#held = held
  }

  /**
   * Reads the policy of the file; undefined, with a line in the log, for a file that is of no use. To be called before
   * anything else.
   */
  async load(): Promise<LoadedSnapshot | undefined> {
    if (this.#path === '') return undefined
    try {
      const read = await readSnapshot(this.#path)
      if (read === undefined) return undefined
      const state = new PolicyState()
      const loaded = state.load(read.entities())
      if (loaded.kind !== 'loaded') return this.#leave(loaded)
      this.#isThere = true
      return { state, checkpoint: read.checkpoint, heardMs: read.heardMs, leftOut: loaded.leftOut }
    } catch (error) {
      return this.#leave({ err: error }) // a line that cannot be read, or entities that no state ever held together
    }
  }

  #leave(fields: object): undefined {
    this.#log.warn({ path: this.#path, ...fields }, 'policy snapshot skipped')
  }

  /** After a change was taken over. */
  changed(changes: readonly EntityChange[]): void {
    if (this.#path === '') return
    this.#isBehind = true
    for (const change of changes) this.#later?.push(change)
    this.#timer ??= setTimeout(() => void this.#enqueue(() => this.#write()), this.#pauseMs).unref()
  }

  /** Kafka has said that nothing is missing. */
  heard(nowMs: number): void {
    if (this.#path === '' || this.#isBehind || !this.#isThere || nowMs - this.#renewedMs < renewEveryMs) return
    this.#renewedMs = nowMs
    void this.#enqueue(() => renewSnapshot(this.#path, nowMs))
  }

  async close(): Promise<void> {
    clearTimeout(this.#timer)
    const held = this.#held()
    if (this.#isBehind) await this.#enqueue(() => this.#write())
    else if (this.#isThere && held !== undefined) await this.#enqueue(() => renewSnapshot(this.#path, held.heardMs))
    await this.#work
  }

  #enqueue(work: () => Promise<void>): Promise<void> {
    this.#work = this.#work.then(work).catch((error: unknown) => {
      this.#log.warn({ err: error, path: this.#path }, 'policy snapshot not written')
    })
    return this.#work
  }

  async #write(): Promise<void> {
    clearTimeout(this.#timer)
    this.#timer = undefined
    const held = this.#held()
    if (held === undefined || !this.#isBehind) return
    const later: EntityChange[] = []
    this.#later = later
    const end = () => {
      const now = this.#held()
      if (now?.state !== held.state) return undefined
      this.#isBehind = false
      this.#later = undefined
      return { checkpoint: now.checkpoint, later }
    }
    const startedMs = performance.now()
    try {
      const isWritten = await writeSnapshot(this.#path, held.state, held.heardMs, end)
      if (isWritten) this.#isThere = true
      else this.changed([])
    } catch (error) {
      this.#isBehind = true
      throw error
    } finally {
      this.#pauseMs = Math.max(writeEveryMs, restPerWrite * (performance.now() - startedMs))
      this.#later = undefined
    }
  }
}
