import type { ServerResponse } from 'node:http'
import { type DecisionFilter, isMeant } from '@weir/api/query/decision-query.ts'
import type { Reach } from '@weir/core/usage/reach.ts'
import type { DecisionRing, LiveDecision } from './decision-ring.ts'

/** Who listens, and to what. */
export interface Listener {
  /** Name of the credential. */
  readonly by: string
  readonly reach: Reach
  readonly filter: DecisionFilter
  readonly isSumsOnly: boolean
  /** Id of the last event that it has; undefined for a new one. */
  readonly lastId: string | undefined
  /** Whether its credential still opens the stream. */
  readonly isAllowed: () => Promise<boolean>
}

type Output = Pick<ServerResponse, 'write' | 'end' | 'destroy' | 'writableLength' | 'once'>

/** More than a person or a page can follow: beyond it decisions are counted instead of sent. */
const sentPerSecondMax = 200
/** A reader that takes less than this in time is too slow for the present. */
const unsentBytesMax = 1_000_000
/** A replay waits for its reader from here on. */
const replayBytesMax = 256_000
/** Outcomes and limits in one second; a policy has far fewer. The rest is one row. */
const sumRowsMax = 500

interface Sum {
  readonly outcome: string
  readonly denied_by: string
  count: number
  cost: number
}

/** One reader's stream: what of the ring it gets, and when. */
export class LiveStream {
  readonly listener: Listener
  readonly #output: Output
  readonly #ring: DecisionRing
  /** Number of the next decision that it may get. */
  #next: number
  /** What came before it listened is not dropped: its reader waits for it. */
  readonly #replayEnd: number
  #isWaiting = false
  #sent = 0
  #dropped = 0
  #sums = new Map<string, Sum>()
  #isEnded = false

  constructor(listener: Listener, output: Output, ring: DecisionRing) {
    this.listener = listener
    this.#output = output
    this.#ring = ring
    this.#next = ring.end
    this.#replayEnd = ring.end
    this.#write('retry: 1000\n: connected\n\n')
    const { lastId, reach } = listener
    if (lastId === undefined) return
    // What the reader may not see was never its last: whether there is such a decision is not said.
    const last = ring.find(lastId)
    const isOwnLast = last !== undefined && reach.covers([ring.at(last)?.subject ?? ''])
    if (isOwnLast) this.#next = last + 1
    else this.gap()
    this.pump()
  }

  /** Sends what has come since. */
  pump(): void {
    while (!this.#isEnded && !this.#isWaiting && this.#next < this.#ring.end) {
      if (this.#next < this.#replayEnd && this.#output.writableLength > replayBytesMax) {
        this.#wait()
        return
      }
      const decision = this.#ring.at(this.#next)
      if (decision === undefined) {
        this.#next = this.#ring.start
        this.gap()
        continue
      }
      this.#next += 1
      this.#offer(decision, this.#next <= this.#replayEnd)
    }
  }

  /** Decisions are missing here. */
  gap(): void {
    this.#write('event: gap\ndata: {}\n\n')
  }

  /** Says that nothing which comes from now on is left out. */
  following(): void {
    this.#write(': following\n\n')
  }

  /** Says what a second was; after that another begins. */
  endSecond(nowMs: number): void {
    if (this.#dropped > 0) this.#write(`event: dropped\ndata: {"count":${this.#dropped}}\n\n`)
    const data = { ts: new Date(nowMs).toISOString(), rows: [...this.#sums.values()] }
    this.#write(`event: sums\ndata: ${JSON.stringify(data)}\n\n`)
    this.#sent = 0
    this.#dropped = 0
    this.#sums = new Map()
  }

  /** Keeps what stands between from taking the connection for dead. */
  heartbeat(): void {
    this.#write(':\n\n')
  }

  /** Ends it if its credential does not open it any more. */
  async check(): Promise<void> {
    if (!(await this.listener.isAllowed().catch(() => false))) this.end()
  }

  end(): void {
    if (this.#isEnded) return
    this.#isEnded = true
    this.#output.end()
  }

  #wait(): void {
    this.#isWaiting = true
    this.#output.once('drain', () => {
      this.#isWaiting = false
      this.pump()
    })
  }

  #offer(decision: LiveDecision, isReplay: boolean): void {
    const { reach, filter, isSumsOnly } = this.listener
    if (!reach.covers([decision.subject])) return
    const seen = decision.seenBy(reach)
    if (!isMeant(filter, seen)) return
    if (!isReplay) this.#add(seen)
    if (isSumsOnly) return
    if (!isReplay && this.#sent >= sentPerSecondMax) {
      this.#dropped += seen.count
      return
    }
    if (!isReplay) this.#sent += 1
    this.#write(decision.textFor(reach))
  }

  #add({ outcome, denied_by, count, cost }: Sum): void {
    const name = `${outcome} ${denied_by}`
    const isRoom = this.#sums.size < sumRowsMax || this.#sums.has(name)
    const known = this.#sums.get(isRoom ? name : '')
    const sum = known ?? { ...(isRoom ? { outcome, denied_by } : { outcome: '', denied_by: '' }), count: 0, cost: 0 }
    sum.count += count
    sum.cost += cost * count
    if (known === undefined) this.#sums.set(isRoom ? name : '', sum)
  }

  #write(text: string): void {
    if (this.#isEnded) return
    this.#output.write(text)
    if (this.#output.writableLength <= unsentBytesMax) return
    this.#isEnded = true
    // Not end(): that would wait for the reader.
    this.#output.destroy()
  }
}
