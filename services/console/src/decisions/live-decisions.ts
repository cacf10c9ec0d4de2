import type { ServerResponse } from 'node:http'
import type { FollowerOptions, TopicFollower } from '@weir/kafka/follow-topic.ts'
import type { StreamRefusal } from '../http/problems.ts'
import { DecisionRing, liveDecision } from './decision-ring.ts'
import { type Listener, LiveStream } from './live-stream.ts'

/** Begins to follow the records of decisions. */
export type Follow = (
  sink: Pick<FollowerOptions, 'onRecords' | 'onSkipped'>,
) => Pick<TopicFollower, 'ready' | 'close' | 'problem'>

/** Streams of a console, and of one credential: each is a connection that stays. */
const [streamsMax, perCallerMax] = [100, 4]
/** Readers that come back within this find what they missed, also if no other one was there. */
const lingerMs = 60_000
/** A stream ends within a second after its credential. */
const tickMs = 500
const [ticksPerSecond, ticksPerHeartbeat] = [2, 30]

/**
 * The decisions of this moment, for all who listen: one follower of Kafka for all streams, begun by the first and ended
 * a minute after the last.
 */
export class LiveDecisions {
  readonly #follow: Follow
  readonly #streams = new Set<LiveStream>()
  #follower: ReturnType<Follow> | undefined
  #ring = new DecisionRing()
  #ticking: NodeJS.Timeout | undefined
  #lingering: NodeJS.Timeout | undefined
  #ticks = 0

  constructor(follow: Follow) {
    this.#follow = follow
  }

  /** Streams that are open. */
  get taken(): number {
    return this.#streams.size
  }

  /** Why decisions do not come; undefined while they do, or while no reader listens. */
  get problem(): string | undefined {
    return this.#follower?.problem
  }

  /** Returns why there is no room for another stream of this credential; undefined if there is. */
  refusal(by: string): StreamRefusal | undefined {
    if (this.#streams.size >= streamsMax) return 'for this console'
    const own = [...this.#streams].filter(({ listener }) => listener.by === by)
    return own.length >= perCallerMax ? 'for this credential' : undefined
  }

  /** Opens a stream on an answer whose head is written. */
  open(listener: Listener, output: ServerResponse): void {
    clearTimeout(this.#lingering)
    this.#follower ??= this.#begin()
    this.#ticking ??= setInterval(() => this.#tick(), tickMs)
    const stream = new LiveStream(listener, output, this.#ring)
    this.#streams.add(stream)
    output.once('close', () => this.#remove(stream))
    // Its reader left while the credential was looked at.
    if (output.destroyed) this.#remove(stream)
    void this.#follower.ready.then(() => stream.following())
  }

  /** Ends all streams, and follows nothing any more. */
  close(): void {
    for (const stream of this.#streams) stream.end()
    this.#streams.clear()
    this.#end()
  }

  #begin(): ReturnType<Follow> {
    return this.#follow({
      onRecords: (partition, records) => {
        for (const record of records) {
          const decision = liveDecision(partition, record)
          if (decision !== undefined) this.#ring.add(decision)
        }
        for (const stream of this.#streams) stream.pump()
      },
      onSkipped: () => {
        for (const stream of this.#streams) stream.gap()
      },
    })
  }

  #tick(): void {
    this.#ticks += 1
    const nowMs = Date.now()
    for (const stream of this.#streams) {
      void stream.check()
      if (this.#ticks % ticksPerSecond === 0) stream.endSecond(nowMs)
      if (this.#ticks % ticksPerHeartbeat === 0) stream.heartbeat()
    }
  }

  #remove(stream: LiveStream): void {
    stream.end()
    this.#streams.delete(stream)
    if (this.#streams.size > 0) return
    clearInterval(this.#ticking)
    this.#ticking = undefined
    clearTimeout(this.#lingering)
    this.#lingering = setTimeout(() => this.#end(), lingerMs).unref()
  }

  #end(): void {
    clearTimeout(this.#lingering)
    clearInterval(this.#ticking)
    this.#ticking = undefined
    this.#follower?.close()
    this.#follower = undefined
    // Another follower begins somewhere else: what was missed in between must not look whole.
    this.#ring = new DecisionRing()
  }
}
