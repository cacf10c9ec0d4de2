import {
  type ChangeLineV1,
  type ChangePositionV1,
  encodeChange,
  encodeChangeDeletion,
  encodeEntityChange,
  type PolicyMessage,
} from '@weir/contracts/policy.v1.ts'
import { uuidv7 } from '@weir/core/ids.ts'
import type { Steps } from '@weir/core/steps.ts'
import { type EntityChange, type EntityKind, entityKinds } from '@weir/policy/entities.ts'
import type { Logger } from '@weir/runtime/logger.ts'
import type { ChangeStore } from './change-store.ts'

/** Entities of one batch: some hundred milliseconds of work for each process that takes it over. */
const entitiesMax = 5_000
/** A quarter of what the topic takes as one batch, because Kafka counts its own framing too. */
const charactersMax = 4 * 1024 * 1024

/** The changes of one batch, and what its audit record says. */
export interface PartOfChange {
  readonly changes: readonly EntityChange[]
  readonly lines: readonly ChangeLineV1[]
}

/** Orders changes so that an entity is put before the entities that refer to it, and deleted after them. */
function inOrder(changes: readonly EntityChange[]): EntityChange[] {
  const puts = Map.groupBy(changes, ({ kind, entity }) => (entity === undefined ? undefined : kind))
  const deletions = Map.groupBy(puts.get(undefined) ?? [], ({ kind }) => kind)
  const of = (groups: typeof puts) => (kind: EntityKind) => groups.get(kind) ?? []
  return [...entityKinds.flatMap(of(puts)), ...entityKinds.toReversed().flatMap(of(deletions))]
}

/**
 * Splits a change into batches: one, unless it is larger than a batch may be. Each of several batches is valid by
 * itself, definitions first and deletions last. All of them carry the audit lines of the whole change, but only the
 * last one carries the line of the applied file: a stop between them must not leave the file as applied. Each step
 * handles one entity.
 */
export function* splitChanges(
  changes: readonly EntityChange[],
  lines: readonly ChangeLineV1[],
): Steps<readonly PartOfChange[]> {
  const parts: EntityChange[][] = [[]]
  let characters = 0
  for (const change of inOrder(changes)) {
    yield
    const { key, value } = encodeEntityChange(change)
    const more = key.length + (value?.length ?? 0)
    const part = parts.at(-1) ?? []
    if (part.length >= entitiesMax || (part.length > 0 && characters + more > charactersMax)) {
      parts.push([change])
      characters = more
    } else {
      part.push(change)
      characters += more
    }
  }
  const ofParts = lines.filter(({ kind }) => kind !== 'policy')
  return parts.map((part, at) => ({ changes: part, lines: at === parts.length - 1 ? lines : ofParts }))
}

/** A record is read back within milliseconds; a person waits for the answer. */
const seenDeadlineMs = 10_000

/** Each try means that another console was faster by milliseconds; of two consoles, both succeed by the second try. */
export const triesMax = 10

/** The last change of a policy without any change. */
const noChange: ChangePositionV1 = { offset: '-1', id: '' }

/** The position of a batch in the topic, and the records that are published with it. */
interface HowPublished {
  /** The last change when this one was planned; undefined for one without entities, which fits everywhere. */
  readonly after: ChangePositionV1 | undefined
  readonly notices?: readonly PolicyMessage[]
}

/** A batch that Kafka has stored. */
export interface PublishedChange {
  readonly id: string
  readonly position: ChangePositionV1
  /** Whether it was read back in time. */
  readonly isSeen: boolean
  /** False for one that was overtaken: no process has taken it over. */
  readonly isTaken: boolean
}

/** Stores batches in the topic, each after the change that its plan is based on. */
export class ChangePublisher {
  readonly #store: ChangeStore
  readonly #log: Logger
  /** Audit records of changes of ours that were left out. They go with the batch that writes their entities again. */
  readonly #leftOut: string[] = []

  constructor(store: ChangeStore, log: Logger) {
    this.#store = store
    this.#log = log
  }

  /** Whether overtaken batches of this console have left something in the topic. */
  get hasLeftOut(): boolean {
    return this.#leftOut.length > 0
  }

  /** The last change of the policy in force. */
  lastChange(): ChangePositionV1 {
    const { checkpoint } = this.#store.policy
    return checkpoint === undefined ? noChange : { offset: String(checkpoint.offset), id: checkpoint.id }
  }

  async publish(by: string, { changes, lines }: PartOfChange, how: HowPublished): Promise<PublishedChange> {
    const { after, notices = [] } = how
    const { policy, clock } = this.#store
    const { publish, audit } = this.#store.changes
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
    return { id, position: { offset: String(offset), id }, isSeen, isTaken }
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
      this.#log.warn({ err: error }, 'leftover parts of skipped changes stay in the topic until the next change')
    }
  }

  /** The stale entities as they are in force, but for those that the changes write. */
  #inForce(changes: readonly EntityChange[]): EntityChange[] {
    const { policy } = this.#store
    const names = new Set(changes.map(({ kind, name }) => `${kind}/${name}`))
    const stale = [...policy.stale].filter(({ kind, name }) => !names.has(`${kind}/${name}`))
    return stale.map(({ kind, name }) => ({ kind, name, entity: policy.state?.get(kind, name) }))
  }
}
