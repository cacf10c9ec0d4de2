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

/** Of a policy without any change. */
const noChange: PlaceOfChangeV1 = { offset: '-1', id: '' }

/** Where a batch is to stand, and what goes with it. */
interface HowPublished {
  /** The change that was the last one when it was planned; undefined for one without entities, which fits everywhere. */
  readonly after: PlaceOfChangeV1 | undefined
  readonly notices?: readonly PolicyMessage[]
}

export interface PublishedChange {
  readonly id: string
  readonly place: PlaceOfChangeV1
  /** Whether it was read back in time. */
  readonly isSeen: boolean
  /** False for one that was overtaken: no process has taken it over. */
  readonly isTaken: boolean
}

/** Stores batches in the topic, each after the change that its plan is based on. */
export interface ChangePublisher {
  /** The last change of the policy in force. */
  lastChange(): PlaceOfChangeV1
  publish(by: string, part: PartOfChange, how: HowPublished): Promise<PublishedChange>
  /** Whether overtaken batches of ours have left something in the topic. */
  readonly hasLeftOut: boolean
  /** Writes such parts again as they are in force. Never rejects: if it fails, the next change does it. */
  restore(by: string): Promise<void>
}

export function createChangePublisher({ policy, audit, clock }: Ports, log: Logger): ChangePublisher {
  /** Audit records of changes of ours that were left out. They go with the batch that writes their entities again. */
  const leftOut: string[] = []

  const lastChange = (): PlaceOfChangeV1 =>
    policy.mark === undefined ? noChange : { offset: String(policy.mark.offset), id: policy.mark.id }

  const inForce = (changes: readonly EntityChange[]): EntityChange[] => {
    const names = new Set(changes.map(({ kind, name }) => `${kind}/${name}`))
    const stale = [...policy.stale].filter(({ kind, name }) => !names.has(`${kind}/${name}`))
    return stale.map(({ kind, name }) => ({ kind, name, entity: policy.state?.get(kind, name) }))
  }

  const publish: ChangePublisher['publish'] = async (by, { changes, lines }, { after, notices = [] }) => {
    const nowMs = clock.nowMs()
    const id = uuidv7(nowMs)
    const entities = after === undefined ? changes : [...inForce(changes), ...changes]
    const surplus = [...audit.takeSurplus(), ...(after === undefined ? [] : leftOut.splice(0))]
    const last = after === undefined ? {} : { after }
    const record = encodeChange(id, { atMs: nowMs, by, summary: lines, ...last })
    const before = [...entities.map(encodeEntityChange), ...notices, ...surplus.map(encodeChangeDeletion)]
    const offset = await policy.publish([...before, record])
    const isSeen = await policy.reached(offset, seenDeadlineMs)
    const isTaken = audit.has(id)
    if (isSeen && !isTaken) leftOut.push(id)
    log.info({ change: id, by, entities: entities.length, isSeen, isTaken }, 'policy change published')
    return { id, place: { offset: String(offset), id }, isSeen, isTaken }
  }

  const restore = async (by: string) => {
    try {
      for (let tries = 0; tries < triesMax && inForce([]).length > 0; tries += 1) {
        await publish(by, { changes: [], lines: [] }, { after: lastChange() })
      }
    } catch (error) {
      log.warn({ err: error }, 'parts of changes that were left out stay in the topic until the next change')
    }
  }

  return {
    lastChange,
    publish,
    restore,
    get hasLeftOut() {
      return leftOut.length > 0
    },
  }
}
