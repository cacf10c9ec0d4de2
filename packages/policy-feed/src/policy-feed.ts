import { topics } from '@weir/contracts/topics.ts'
import type { KafkaOptions } from '@weir/kafka/connect.ts'
import type { EntityChange, PolicyFault } from '@weir/policy/entities.ts'
import type { Policy } from '@weir/policy/policy.ts'
import { PolicyState } from '@weir/policy/state/policy-state.ts'
import {
  type AuditRecord,
  isOvertaken,
  type PolicyCheckpoint,
  type PolicyTransaction,
  TransactionAssembler,
} from './assemble-transactions.ts'
import { CatchUp, type EntityName } from './catch-up.ts'
import { OffsetWaiters } from './offset-waiters.ts'
import { RejectedChanges } from './rejected-changes.ts'
import { SnapshotWriter } from './snapshot-writer.ts'
import { TopicTailer } from './topic-tailer.ts'

export type { AuditRecord, PolicyCheckpoint } from './assemble-transactions.ts'
export type { EntityName } from './catch-up.ts'

/** Where a policy comes from, and what reports its changes. */
export interface PolicyFeedOptions extends KafkaOptions {
  /** Path of the copy on disk that a start without Kafka takes; empty for none. Each process has its own. */
  readonly snapshotPath: string
  /**
   * The policy of the file, for as long as the topic holds none; undefined where there is no file. Asked only when it
   * is needed: what it throws then fails `firstPolicy`.
   */
  readonly seed: () => Policy | undefined
  /** Gets every audit record of the topic in its order, but for those of overtaken changes. */
  readonly onAudit?: (record: AuditRecord) => void
  /** Called when the topic was read from its beginning, and may be another one: all of its audit records follow. */
  readonly onAuditRestart?: () => void
  /** Given by tests only. */
  readonly topic?: string
  /** How long a start waits for Kafka; given by tests only. */
  readonly startTimeoutMs?: number
}

/** What has just come into force. */
export interface PolicyUpdate {
  readonly policy: Policy
  /** `policy` is not the object that it was before. Otherwise only subjects and keys have changed. */
  readonly isReplaced: boolean
  /** Empty when the whole policy was read from the beginning. */
  readonly changes: readonly EntityChange[]
  /** Subjects whose refusals are to be forgotten. */
  readonly resets: readonly string[]
}

/** What the readiness line, the metrics and the console show of a feed. */
export interface PolicyFeedStatus {
  /** Where the policy in force came from. */
  readonly source: 'none' | 'seed' | 'snapshot' | 'topic'
  /** What keeps the feed from following the topic; empty while it does. */
  readonly waitingFor: string
  /** Since Kafka last said that everything was read; Infinity for never. */
  readonly ageMs: number
  /** What of the topic or the snapshot is not in force, and why; undefined when all of it is. */
  readonly refused: string | undefined
}

/**
 * A start waits so long for Kafka to answer, and then so long for the rest of the topic: a million subjects take
 * seconds.
 */
const answerTimeoutMs = 5_000
const readTimeoutMs = 60_000

/**
 * A deletion can be read in the topic for a day (delete.retention.ms): a process that heard nothing for longer than
 * this could miss one, and reads everything from the beginning.
 */
const resumableMs = 12 * 3_600_000

type Source = PolicyFeedStatus['source']

/**
 * The policy of weir.policy.v1, held in memory and followed for as long as the process lives. Kafka may be away at the
 * start, and may go away and come back at any time.
 *
 * Reading from the beginning, everything is gathered and then taken over as a whole (`#catchUp`); after that, and after
 * a snapshot, change by change. Nothing is in force before the end of the topic was reached once, or Kafka was waited
 * for in vain.
 */
export class PolicyFeed {
  readonly #options: PolicyFeedOptions
  readonly #topic: string
  readonly #assembler: TransactionAssembler
  readonly #snapshot: SnapshotWriter
  readonly #rejected: RejectedChanges
  readonly #waiters = new OffsetWaiters()
  readonly #listeners: ((news: PolicyUpdate) => void)[] = []
  readonly #first = Promise.withResolvers<Policy>()
  #tailer: TopicTailer | undefined
  #startTimer: NodeJS.Timeout | undefined
  #catchUp: CatchUp | undefined
  #state: PolicyState | undefined
  #checkpoint: PolicyCheckpoint | undefined
  #policy: Policy | undefined
  #source: Source = 'none'
  #confirmedMs = 0
  /** Whether `onAudit` got all audit records of the topic. */
  #isAuditComplete: boolean
  #isClosed = false
  /** Counts since the start, for metrics. */
  readonly counters = { changes: 0, refusedChanges: 0, unreadableRecords: 0 }

  /** Starts to follow the topic. */
  constructor(options: PolicyFeedOptions) {
    this.#options = options
    this.#topic = options.topic ?? topics.policy
    this.#isAuditComplete = options.onAudit === undefined
    this.#rejected = new RejectedChanges(options.log)
    this.#assembler = new TransactionAssembler((offset, reason) => this.#skip(offset, reason))
    this.#snapshot = new SnapshotWriter(options.snapshotPath, options.log, () =>
      this.#state === undefined || this.#checkpoint === undefined
        ? undefined
        : { state: this.#state, checkpoint: this.#checkpoint, heardMs: this.#confirmedMs },
    )
    this.#first.promise.catch(() => undefined) // no caller may be waiting
    void this.#start().catch((error: unknown) => this.#first.reject(error))
  }

  /** The policy in force; undefined while there is none. */
  get policy(): Policy | undefined {
    return this.#policy
  }

  /**
   * What the topic or the snapshot holds, the seed never; undefined while neither was read. Another object once the
   * topic was read from its beginning.
   */
  get state(): PolicyState | undefined {
    return this.#state
  }

  get status(): PolicyFeedStatus {
    return {
      source: this.#source,
      waitingFor: this.#tailer === undefined ? 'the snapshot to be read' : this.#tailer.waitingFor,
      ageMs: this.#confirmedMs === 0 ? Number.POSITIVE_INFINITY : Math.max(0, Date.now() - this.#confirmedMs),
      refused: this.#rejected.summary,
    }
  }

  /** Calls `listener` with every update that comes into force after `firstPolicy`, in order. Listeners do not throw. */
  onChange(listener: (news: PolicyUpdate) => void): void {
    this.#listeners.push(listener)
  }

  /**
   * The topic's policy if Kafka answers within seconds, else the snapshot's, else the seed; otherwise it waits for the
   * topic as long as it takes. Rejects when the feed is closed, or the seed was needed and is wrong.
   */
  firstPolicy(): Promise<Policy> {
    return this.#first.promise
  }

  /** Whether everything up to this offset of the topic was taken over or left out before the deadline. */
  reached(offset: bigint, deadlineMs: number): Promise<boolean> {
    return this.#waiters.wait(offset, deadlineMs)
  }

  /** The last change that is in `state`, or was left out of it: what is planned on this state goes after it. */
  get checkpoint(): PolicyCheckpoint | undefined {
    return this.#checkpoint
  }

  /** What changes that were left out have written last: the next change writes them again as they are in `state`. */
  get stale(): Iterable<EntityName> {
    return this.#rejected.stale
  }

  /**
   * Why a change that was reached was left out: others came before it. By its id in the audit; undefined for one in
   * force.
   */
  problemsOf(change: string): readonly PolicyFault[] | undefined {
    return this.#rejected.problemsOf(change)
  }

  /** Writes the snapshot if it is behind. */
  async close(): Promise<void> {
    this.#isClosed = true
    clearTimeout(this.#startTimer)
    this.#first.reject(new Error('the policy feed was closed'))
    this.#waiters.close()
    this.#tailer?.close()
    await this.#snapshot.close()
  }

  async #start(): Promise<void> {
    const { startTimeoutMs = answerTimeoutMs } = this.#options
    await this.#loadSnapshot()
    if (this.#isClosed) return
    this.#startTimer = setTimeout(() => this.#startWithoutKafka(), startTimeoutMs)
    this.#tailer = new TopicTailer({
      ...this.#options,
      topic: this.#topic,
      resumeFrom: () => this.#resumeFrom(),
      onBeginning: () => this.#begin(new CatchUp()),
      onResumed: () => this.#begin(undefined),
      onRecords: (records) => {
        for (const record of records) {
          const change = this.#assembler.add(record)
          if (change !== undefined) this.#onChange(change)
        }
      },
      onEnd: (next) => this.#onEnd(next),
      onMissing: () => {
        if (this.#policy === undefined) this.#startWithoutPolicy()
      },
    })
  }

  async #loadSnapshot(): Promise<void> {
    const loaded = await this.#snapshot.load()
    if (loaded === undefined) return
    this.#rejected.leftOut(loaded.leftOut)
    this.#state = loaded.state
    this.#checkpoint = loaded.checkpoint
    this.#confirmedMs = loaded.heardMs
  }

  #resumeFrom(): PolicyCheckpoint | undefined {
    // A clock that was wrong then, or is now, tells nothing.
    const isFresh = Math.abs(Date.now() - this.#confirmedMs) < resumableMs
    return isFresh && this.#isAuditComplete && this.#catchUp === undefined ? this.#checkpoint : undefined
  }

  #begin(catchUp: CatchUp | undefined): void {
    this.#assembler.forget()
    this.#waiters.restart()
    this.#catchUp = catchUp
    if (this.#policy !== undefined || this.#startTimer === undefined) return
    clearTimeout(this.#startTimer)
    this.#startTimer = setTimeout(() => this.#startWithoutKafka(), readTimeoutMs)
  }

  #onChange(change: PolicyTransaction): void {
    if (this.#catchUp !== undefined) {
      const counts = this.#catchUp.add(change)
      if (counts && this.#options.onAudit !== undefined) this.#catchUp.audits.push(change.audit)
      return
    }
    if (isOvertaken(change, this.#checkpoint)) {
      this.#options.log.info({ change: change.audit.id }, 'policy change skipped: another came first')
      this.#rejected.overtake(change.changes)
      this.#advanceTo(change.checkpoint, [])
      return
    }
    this.#options.onAudit?.(change.audit)
    this.#apply(change, this.#state ?? new PolicyState())
  }

  #advanceTo(checkpoint: PolicyCheckpoint, taken: readonly EntityChange[]): void {
    this.#checkpoint = checkpoint
    this.#snapshot.changed(taken)
    this.#waiters.moveTo(checkpoint.offset + 1n)
  }

  #apply(change: PolicyTransaction, state: PolicyState): void {
    this.#state = state
    const applied = state.apply(change.changes)
    // Before listeners run: the checkpoint and the state belong together.
    this.#checkpoint = change.checkpoint
    if (applied.kind === 'problems') this.#refuse(change, applied.problems)
    else {
      this.counters.changes += 1
      this.#rejected.fixed(change.changes)
      // Before the first end it is not known yet whether there is more.
      if (this.#policy !== undefined) this.#enforce(applied.policy, 'topic', change)
    }
    this.#advanceTo(change.checkpoint, applied.kind === 'applied' ? change.changes : [])
  }

  #onEnd(next: bigint): void {
    this.#confirmedMs = Date.now()
    if (this.#catchUp?.isChanged === true) this.#finishCatchUp(this.#catchUp)
    if (this.#catchUp !== undefined) return
    if (this.#source !== 'topic' && this.#state !== undefined && this.#checkpoint !== undefined)
      this.#enforce(this.#state.policy, 'topic')
    if (this.#policy === undefined) this.#startWithoutPolicy()
    this.#snapshot.heard(this.#confirmedMs)
    this.#waiters.moveTo(next)
  }

  #finishCatchUp(catchUp: CatchUp): void {
    const result = catchUp.finish()
    this.#options.onAuditRestart?.()
    for (const audit of catchUp.audits) this.#options.onAudit?.(audit)
    if (result.kind === 'unusable') {
      this.#rejected.unusable(this.#topic, result.problems)
      return
    }
    this.#catchUp = undefined
    this.#isAuditComplete = true
    if (result.checkpoint === undefined && this.#policy === undefined) this.#startWithoutPolicy()
    this.#rejected.clear()
    this.#rejected.overtake(result.overtaken)
    this.#rejected.leftOut(result.leftOut)
    for (const { change, problems } of result.tried) {
      if (problems.length > 0) this.#refuse(change, problems)
      else this.#rejected.fixed(change.changes)
    }
    this.#state = result.state
    this.#checkpoint = result.checkpoint
    if (result.checkpoint !== undefined) {
      this.#enforce(result.state.policy, 'topic')
      this.#snapshot.changed([])
    } else if (this.#source === 'topic' || this.#source === 'snapshot') {
      const { log } = this.#options
      log.error({ topic: this.#topic }, 'the policy topic is empty; the previous policy stays in force')
    }
  }

  #enforce(policy: Policy, source: Source, change?: Pick<PolicyTransaction, 'changes' | 'resets'>): void {
    const isFirst = this.#policy === undefined
    const isReplaced = policy !== this.#policy
    this.#policy = policy
    this.#source = source
    clearTimeout(this.#startTimer)
    this.#startTimer = undefined
    const { changes = [], resets = [] } = change ?? {}
    if (isFirst) this.#first.resolve(policy)
    else if (isReplaced || change !== undefined) {
      for (const listener of this.#listeners) listener({ policy, isReplaced, changes, resets })
    }
  }

  #refuse(change: PolicyTransaction, problems: readonly PolicyFault[]): void {
    this.counters.refusedChanges += 1
    this.#rejected.refuse(change, problems)
  }

  #skip(offset: bigint, reason: string): void {
    this.counters.unreadableRecords += 1
    this.#options.log.warn({ topic: this.#topic, offset: String(offset), reason }, 'policy record skipped')
  }

  /** Kafka did not answer in time. */
  #startWithoutKafka(): void {
    if (this.#policy !== undefined || this.#isClosed) return
    if (this.#state !== undefined && this.#checkpoint !== undefined) this.#enforce(this.#state.policy, 'snapshot')
    else if (this.#catchUp === undefined) this.#useSeed()
  }

  /** Kafka says that there is no policy. */
  #startWithoutPolicy(): void {
    if (this.#isClosed) return
    this.#useSeed()
    if (this.#policy === undefined && this.#state !== undefined && this.#checkpoint !== undefined)
      this.#enforce(this.#state.policy, 'snapshot')
  }

  #useSeed(): void {
    try {
      const seed = this.#options.seed()
      if (seed !== undefined) this.#enforce(seed, 'seed')
    } catch (error) {
      this.#first.reject(error)
    }
  }
}
