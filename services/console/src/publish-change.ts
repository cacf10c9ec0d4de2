import {
  encodeChange,
  encodeChangeDeletion,
  encodeEntityChange,
  type PlaceOfChangeV1,
  type PolicyMessage,
} from '@weir/contracts/policy.v1.ts'
import { uuidv7 } from '@weir/core/ids.ts'
import type { EntityChange } from '@weir/policy/entities.ts'
import type { Logger } from '@weir/runtime/logger.ts'
import type { Ports } from './ports.ts'
import type { PartOfChange } from './split-changes.ts'

/** Kafka gives a record back within milliseconds; somebody waits for the answer. */
const seenDeadlineMs = 10_000

/** Each time another console was faster by milliseconds: two of them are through by the second time. */
export const triesMax = 10

/** The last change of a policy without any change. */
const noChange: PlaceOfChangeV1 = { offset: '-1', id: '' }

/** Where a batch is to stand, and what goes with it. */
interface HowPublished {
  /** The last change when this one was planned; undefined for one without entities, which fits everywhere. */
  readonly after: PlaceOfChangeV1 | undefined
  readonly notices?: readonly PolicyMessage[]
}

/** A batch that Kafka has stored. */
export interface PublishedChange {
  readonly id: string
  readonly place: PlaceOfChangeV1
  /** Whether it was read back in time. */
  readonly isSeen: boolean
  /** False for one that was overtaken: no process has taken it over. */
  readonly isTaken: boolean
}

/** Stores batches in the topic, each after the change that its plan is based on. */
export class ChangePublisher {
  readonly #ports: Ports
  readonly #log: Logger
  /** Audit records of changes of ours that were left out. They go with the batch that writes their entities again. */
  readonly #leftOut: string[] = []

  constructor(ports: Ports, log: Logger) {
    this.#ports = ports
    this.#log = log
  }

  /** Whether overtaken batches of this console have left something in the topic. */
  get hasLeftOut(): boolean {
    return this.#leftOut.length > 0
  }

  /** The last change of the policy in force. */
  lastChange(): PlaceOfChangeV1 {
    const { mark } = this.#ports.policy
    return mark === undefined ? noChange : { offset: String(mark.offset), id: mark.id }
  }

  async publish(by: string, { changes, lines }: PartOfChange, how: HowPublished): Promise<PublishedChange> {
    const { after, notices = [] } = how
    const { publish, policy, audit, clock } = this.#ports
    const nowMs = clock.nowMs()
    const id = uuidv7(nowMs)
    const entities = after === undefined ? changes : [...this.#inForce(changes), ...changes]
    const surplus = [...audit.takeSurplus(), ...(after === undefined ? [] : this.#leftOut.splice(0))]
    const last = after === undefined ? {} : { after }
    const record = encodeChange(id, { atMs: nowMs, by, summary: lines, ...last })
    const before = [...entities.map(encodeEntityChange), ...notices, ...surplus.map(encodeChangeDeletion)]
    const offset = await publish([...before, record])
    const isSeen = await policy.reached(offset, seenDeadlineMs)
    const isTaken = audit.has(id)
    if (isSeen && !isTaken) this.#leftOut.push(id)
    this.#log.info({ change: id, by, entities: entities.length, isSeen, isTaken }, 'policy change published')
    return { id, place: { offset: String(offset), id }, isSeen, isTaken }
  }

  /**
   * Writes again, as it is in force, what overtaken batches changed in the topic. Never rejects: the next change
   * repeats it.
   */
  async restore(by: string): Promise<void> {
    try {
      for (let tries = 0; tries < triesMax && this.#inForce([]).length > 0; tries += 1) {
        await this.publish(by, { changes: [], lines: [] }, { after: this.lastChange() })
      }
    } catch (error) {
      this.#log.warn({ err: error }, 'parts of changes that were left out stay in the topic until the next change')
    }
  }

  /** The stale entities as they are in force, but for those that the changes write. */
  #inForce(changes: readonly EntityChange[]): EntityChange[] {
    const { policy } = this.#ports
    const names = new Set(changes.map(({ kind, name }) => `${kind}/${name}`))
    const stale = [...policy.stale].filter(({ kind, name }) => !names.has(`${kind}/${name}`))
    return stale.map(({ kind, name }) => ({ kind, name, entity: policy.state?.get(kind, name) }))
  }
}
