import { topics } from '@weir/contracts/topics.ts'
import type { EntityChange, PolicyFault } from '@weir/policy/entities.ts'
import type { Policy } from '@weir/policy/policy.ts'
import { createPolicyState, type PolicyState } from '@weir/policy/state/policy-state.ts'
import { CatchUp, type EntityName } from './catch-up.ts'
import {
  type ChangeGatherer,
  createChangeGatherer,
  isOvertaken,
  type Mark,
  type WholeChange,
} from './gather-changes.ts'
import { KeptSnapshot } from './kept-snapshot.ts'
import { loadSnapshot } from './load-snapshot.ts'
import type { PolicyFeed, PolicyFeedOptions, PolicyFeedStatus, PolicyNews } from './policy-feed.ts'
import { RefusedParts } from './refused-parts.ts'

import { followTopic, type TopicFollower } from './topic-follower.ts'
import { Waiters } from './waiters.ts'

/** A start waits so long for Kafka to answer, and then so long for the rest of the topic: a million subjects take seconds. */
const answerPatienceMs = 5_000
const readPatienceMs = 60_000

/**
 * A deletion can be read in the topic for a day (delete.retention.ms): whoever heard nothing for longer than this could miss
 * one, and reads everything anew.
 */
const resumableMs = 12 * 3_600_000

type Source = PolicyFeedStatus['source']

/**
 * Reading from the beginning, everything is gathered and then taken over as a whole (`#catchUp`); after that, and after a snapshot,
 * change by change. Nothing is in force before the end of the topic was reached once, or Kafka was waited for in vain.
 */
export class LiveFeed implements PolicyFeed {
  readonly #options: PolicyFeedOptions
  readonly #topic: string
  readonly #gatherer: ChangeGatherer
  readonly #snapshot: KeptSnapshot
  readonly #refused: RefusedParts
  readonly #waiters = new Waiters()
  readonly #listeners: ((news: PolicyNews) => void)[] = []
  readonly #first = Promise.withResolvers<Policy>()
  #follower: TopicFollower | undefined
  #patience: NodeJS.Timeout | undefined
  #catchUp: CatchUp | undefined
  #state: PolicyState | undefined
  #mark: Mark | undefined
  #policy: Policy | undefined
  #source: Source = 'none'
  #heardMs = 0
  /** Whether all audit records of the topic were told. */
  #isAuditTold: boolean
  #isClosed = false
  readonly counters = { changes: 0, refusedChanges: 0, unreadableRecords: 0 }

  constructor(options: PolicyFeedOptions) {
    this.#options = options
    this.#topic = options.topic ?? topics.policy
    this.#isAuditTold = options.onAudit === undefined
    this.#refused = new RefusedParts(options.log)
    this.#gatherer = createChangeGatherer((offset, reason) => this.#skip(offset, reason))
    this.#snapshot = new KeptSnapshot(options.snapshotPath, options.log, () =>
      this.#state === undefined || this.#mark === undefined
        ? undefined
        : { state: this.#state, mark: this.#mark, heardMs: this.#heardMs },
    )
    this.#first.promise.catch(() => undefined) // nobody may be waiting
    void this.#start().catch((error: unknown) => this.#first.reject(error))
  }

  get policy(): Policy | undefined {
    return this.#policy
  }

  get state(): PolicyState | undefined {
    return this.#state
  }

  get status(): PolicyFeedStatus {
    return {
      source: this.#source,
      waitingFor: this.#follower === undefined ? 'the snapshot to be read' : this.#follower.waitingFor,
      ageMs: this.#heardMs === 0 ? Number.POSITIVE_INFINITY : Math.max(0, Date.now() - this.#heardMs),
      refused: this.#refused.summary,
    }
  }

  onChange(listener: (news: PolicyNews) => void): void {
    this.#listeners.push(listener)
  }

  firstPolicy(): Promise<Policy> {
    return this.#first.promise
  }

  reached(offset: bigint, deadlineMs: number): Promise<boolean> {
    return this.#waiters.wait(offset, deadlineMs)
  }

  get mark(): Mark | undefined {
    return this.#mark
  }

  get stale(): Iterable<EntityName> {
    return this.#refused.stale
  }

  problemsOf(change: string): readonly PolicyFault[] | undefined {
    return this.#refused.problemsOf(change)
  }

  async close(): Promise<void> {
    this.#isClosed = true
    clearTimeout(this.#patience)
    this.#first.reject(new Error('the policy feed was closed'))
    this.#waiters.close()
    this.#follower?.close()
    await this.#snapshot.close()
  }

  async #start(): Promise<void> {
    const { snapshotPath, patienceMs = answerPatienceMs } = this.#options
    if (snapshotPath !== '') await this.#loadSnapshot(snapshotPath)
    if (this.#isClosed) return
    this.#patience = setTimeout(() => this.#goWithout(), patienceMs)
    this.#follower = followTopic({
      ...this.#options,
      topic: this.#topic,
      resumeAt: () => this.#resumeAt(),
      onBeginning: () => this.#begin(new CatchUp()),
      onResumed: () => this.#begin(undefined),
      onRecords: (records) => {
        for (const record of records) {
          const change = this.#gatherer.add(record)
          if (change !== undefined) this.#take(change)
        }
      },
      onEnd: (next) => this.#reachEnd(next),
      onMissing: () => {
        if (this.#policy === undefined) this.#goWithoutTopic()
      },
    })
  }

  async #loadSnapshot(path: string): Promise<void> {
    const loaded = await loadSnapshot(path, this.#options.log)
    if (loaded === undefined) return
    this.#refused.leftOut(loaded.leftOut)
    this.#state = loaded.state
    this.#mark = loaded.mark
    this.#heardMs = loaded.heardMs
    this.#snapshot.isThere = true
  }

  #resumeAt(): Mark | undefined {
    // A clock that was wrong then, or is now, tells nothing.
    const isFresh = Math.abs(Date.now() - this.#heardMs) < resumableMs
    return isFresh && this.#isAuditTold && this.#catchUp === undefined ? this.#mark : undefined
  }

  #begin(catchUp: CatchUp | undefined): void {
    this.#gatherer.forget()
    this.#waiters.restart()
    this.#catchUp = catchUp
    if (this.#policy !== undefined || this.#patience === undefined) return
    clearTimeout(this.#patience)
    this.#patience = setTimeout(() => this.#goWithout(), readPatienceMs)
  }

  #take(change: WholeChange): void {
    if (this.#catchUp !== undefined) {
      const counts = this.#catchUp.add(change)
      if (counts && this.#options.onAudit !== undefined) this.#catchUp.audits.push(change.audit)
      return
    }
    if (isOvertaken(change, this.#mark)) {
      this.#options.log.info({ change: change.audit.id }, 'policy change left out: another came first')
      this.#refused.overtake(change.changes)
      this.#passed(change.mark, [])
      return
    }
    this.#options.onAudit?.(change.audit)
    this.#takeOver(change, this.#state ?? createPolicyState())
  }

  #passed(mark: Mark, taken: readonly EntityChange[]): void {
    this.#mark = mark
    this.#snapshot.changed(taken)
    this.#waiters.moveTo(mark.offset + 1n)
  }

  #takeOver(change: WholeChange, state: PolicyState): void {
    this.#state = state
    const applied = state.apply(change.changes)
    // Before listeners run: the mark and the state belong together.
    this.#mark = change.mark
    if (applied.kind === 'problems') this.#refuse(change, applied.problems)
    else {
      this.counters.changes += 1
      this.#refused.mended(change.changes)
      // Before the first end it is not known yet whether there is more.
      if (this.#policy !== undefined) this.#enforce(applied.policy, 'topic', change)
    }
    this.#passed(change.mark, applied.kind === 'applied' ? change.changes : [])
  }

  #reachEnd(next: bigint): void {
    this.#heardMs = Date.now()
    if (this.#catchUp?.isChanged === true) this.#finishCatchUp(this.#catchUp)
    if (this.#catchUp !== undefined) return
    if (this.#source !== 'topic' && this.#state !== undefined && this.#mark !== undefined)
      this.#enforce(this.#state.policy, 'topic')
    if (this.#policy === undefined) this.#goWithoutTopic()
    this.#snapshot.heard(this.#heardMs)
    this.#waiters.moveTo(next)
  }

  #finishCatchUp(catchUp: CatchUp): void {
    const result = catchUp.finish()
    this.#options.onAuditAnew?.()
    for (const audit of catchUp.audits) this.#options.onAudit?.(audit)
    if (result.kind === 'unusable') {
      this.#refused.unusable(this.#topic, result.problems)
      return
    }
    this.#catchUp = undefined
    this.#isAuditTold = true
    if (result.mark === undefined && this.#policy === undefined) this.#goWithoutTopic()
    this.#refused.clear()
    this.#refused.overtake(result.overtaken)
    this.#refused.leftOut(result.leftOut)
    for (const { change, problems } of result.tried) {
      if (problems.length > 0) this.#refuse(change, problems)
      else this.#refused.mended(change.changes)
    }
    this.#state = result.state
    this.#mark = result.mark
    if (result.mark !== undefined) {
      this.#enforce(result.state.policy, 'topic')
      this.#snapshot.changed([])
    } else if (this.#source === 'topic' || this.#source === 'snapshot') {
      const { log } = this.#options
      log.error({ topic: this.#topic }, 'the policy topic is empty; the policy before stays in force')
    }
  }

  #enforce(policy: Policy, source: Source, change?: Pick<WholeChange, 'changes' | 'resets'>): void {
    const isFirst = this.#policy === undefined
    const isReplaced = policy !== this.#policy
    this.#policy = policy
    this.#source = source
    clearTimeout(this.#patience)
    this.#patience = undefined
    const { changes = [], resets = [] } = change ?? {}
    if (isFirst) this.#first.resolve(policy)
    else if (isReplaced || change !== undefined) {
      for (const listener of this.#listeners) listener({ policy, isReplaced, changes, resets })
    }
  }

  #refuse(change: WholeChange, problems: readonly PolicyFault[]): void {
    this.counters.refusedChanges += 1
    this.#refused.refuse(change, problems)
  }

  #skip(offset: bigint, reason: string): void {
    this.counters.unreadableRecords += 1
    this.#options.log.warn({ topic: this.#topic, offset: String(offset), reason }, 'policy record skipped')
  }

  /** Kafka did not answer in time. */
  #goWithout(): void {
    if (this.#policy !== undefined || this.#isClosed) return
    if (this.#state !== undefined && this.#mark !== undefined) this.#enforce(this.#state.policy, 'snapshot')
    else if (this.#catchUp === undefined) this.#goBySeed()
  }

  /** Kafka says that there is no policy. */
  #goWithoutTopic(): void {
    if (this.#isClosed) return
    this.#goBySeed()
    if (this.#policy === undefined && this.#state !== undefined && this.#mark !== undefined)
      this.#enforce(this.#state.policy, 'snapshot')
  }

  #goBySeed(): void {
    try {
      const seed = this.#options.seed()
      if (seed !== undefined) this.#enforce(seed, 'seed')
    } catch (error) {
      this.#first.reject(error)
    }
  }
}
