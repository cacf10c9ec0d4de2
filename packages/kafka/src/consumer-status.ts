/** How far a partition is read. */
export interface PartitionPosition {
  readonly topic: string
  readonly partition: number
  /** Records that were not handled when the last batch was fetched; those of a batch in hand are among them. */
  readonly lag: number
  /**
   * When the broker appended the oldest of them, in milliseconds since the epoch; of records that were not fetched yet,
   * no later than so. Undefined without lag.
   */
  readonly oldestMs: number | undefined
}

/** A partition that is not read until a person has looked at it, or it is assigned again. */
export interface StoppedPartition {
  readonly topic: string
  readonly partition: number
  readonly reason: string
}

/** For readiness, liveness and metrics. */
export interface ConsumerStatus {
  /** `running`: a member of the group, and heard by Kafka within the session timeout. `crashed` is final. */
  readonly state: 'connecting' | 'running' | 'crashed'
  /** What a consumer that is not running waits for or died of; empty while it runs. */
  readonly waitingFor: string
  /** Partitions by topic; empty between assignments. */
  readonly assigned: Readonly<Record<string, readonly number[]>>
  /** Of the assigned partitions that a batch came of. */
  readonly positions: readonly PartitionPosition[]
  /** Partitions of ours that are not read because something is wrong with them, and what. */
  readonly stopped: readonly StoppedPartition[]
  /** How often this process came back to the group as another member: it had lost its place. */
  readonly membersLost: number
  /** When Kafka last took a heartbeat or a batch was finished, in milliseconds since the epoch; 0 for never. */
  readonly lastProgressMs: number
}

/** What a consumer knows about its place in the group. Written by its events, read by its status. */
export class Assignment {
  readonly #sessionTimeoutMs: number
  #assigned: Readonly<Record<string, readonly number[]>> = {}
  readonly #positions = new Map<string, PartitionPosition>()
  readonly #stopped = new Map<string, StoppedPartition>()
  #lastProgressMs = 0
  #memberId: string | undefined
  #membersLost = 0
  waitingFor = 'the first connection to Kafka'
  readonly #denied = new Map<string, string>()
  /** Why there was no connection for a heartbeat; empty after one that Kafka took. */
  #unheard = ''
  crashed: string | undefined
  /** How often the group was joined. */
  joins = 0

  constructor(sessionTimeoutMs: number) {
    this.#sessionTimeoutMs = sessionTimeoutMs
  }

  join(assigned: Readonly<Record<string, readonly number[]>>, memberId: string): void {
    if (this.#memberId !== undefined && this.#memberId !== memberId) this.#membersLost += 1
    this.#memberId = memberId
    this.#assigned = assigned
    this.#positions.clear()
    this.#stopped.clear()
    this.#denied.clear()
    this.waitingFor = ''
    this.joins += 1
    this.progress()
  }

  /** Not a member of the group until the next join. */
  wait(reason: string): void {
    this.#assigned = {}
    this.#positions.clear()
    this.#stopped.clear()
    this.waitingFor = reason
  }

  crash(reason: string): void {
    this.wait(reason)
    this.crashed = reason
  }

  /** Any trouble of the client; what says why it cannot connect is kept. */
  trouble(message: string): void {
    if (!/^Connection error: |WEIR_/.test(message)) return
    this.#unheard = message.replace(/^.*(?:Connection error|from the list): /, '')
  }

  progress(): void {
    this.#unheard = ''
    this.#lastProgressMs = Date.now()
  }

  /** A batch is in hand: where the partition stands before it. */
  begin(position: PartitionPosition): void {
    this.#positions.set(`${position.topic}:${position.partition}`, position)
  }

  /** A batch was handled: where the partition stands behind it. */
  moveTo(position: PartitionPosition): void {
    this.begin(position)
    this.#denied.delete(`${position.topic}:${position.partition}`)
    this.progress()
  }

  /** Why Kafka does not let a partition's batch be worked off, which is tried again. Gives whether that is new. */
  deny({ topic, partition, reason }: StoppedPartition): boolean {
    const isNew = ![...this.#denied.values()].includes(reason)
    this.#denied.set(`${topic}:${partition}`, reason)
    return isNew
  }

  stop(stopped: StoppedPartition): void {
    this.#stopped.set(`${stopped.topic}:${stopped.partition}`, stopped)
  }

  goOn({ topic, partition }: Omit<StoppedPartition, 'reason'>): void {
    this.#stopped.delete(`${topic}:${partition}`)
  }

  status(): ConsumerStatus {
    const silentMs = Date.now() - this.#lastProgressMs
    const isSilent = this.waitingFor === '' && silentMs > this.#sessionTimeoutMs
    const denied = [...new Set(this.#denied.values())].join('; ')
    const unheard = this.#unheard && `: ${this.#unheard}`
    const silence = isSilent ? `no response to a heartbeat for ${silentMs} ms${unheard}` : ''
    const waitingFor = this.waitingFor || denied || silence
    const state = this.crashed !== undefined ? 'crashed' : waitingFor === '' ? 'running' : 'connecting'
    return {
      state,
      waitingFor,
      assigned: this.#assigned,
      positions: [...this.#positions.values()],
      stopped: [...this.#stopped.values()],
      membersLost: this.#membersLost,
      lastProgressMs: this.#lastProgressMs,
    }
  }
}
