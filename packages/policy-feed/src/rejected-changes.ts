import type { KafkaLog } from '@weir/kafka/connect.ts'
import type { EntityChange, PolicyFault } from '@weir/policy/entities.ts'
import { entityKey, type PolicyTransaction } from './assemble-transactions.ts'
import type { EntityName } from './catch-up.ts'

/** Of the problems of one change so many are logged: the first ones explain the others. */
const problemsLogged = 5
/** The most parts that are remembered: the readiness line, for people, names the first. */
const partsMax = 1_000
/** The most changes whose problems are remembered: the author of a change asks for them immediately. */
const changesMax = 100

/** What the topic holds and the policy in force does not, until the same entities are changed again. */
export class RejectedChanges {
  readonly #log: KafkaLog
  /** Reason by entity, or by a fault's path. */
  readonly #parts = new Map<string, string>()
  readonly #problemsOf = new Map<string, readonly PolicyFault[]>()
  /** By the key of their records; at most every entity of the topic once. */
  readonly #stale = new Map<string, EntityName>()
  #whole: string | undefined

  constructor(log: KafkaLog) {
    this.#log = log
  }

  get summary(): string | undefined {
    if (this.#whole !== undefined) return this.#whole
    const [first] = this.#parts
    if (first === undefined) return undefined
    const more = this.#parts.size > 1 ? `, and ${this.#parts.size - 1} more` : ''
    return `${first[0]} is not in force as the topic has it: ${first[1]}${more}`
  }

  /** Why the change of this id in the audit was refused; undefined if it was not, or long ago. */
  problemsOf(change: string): readonly PolicyFault[] | undefined {
    return this.#problemsOf.get(change)
  }

  /** Entities whose last records in the topic were never in force. */
  get stale(): Iterable<EntityName> {
    return this.#stale.values()
  }

  overtake(entities: Iterable<EntityName>): void {
    for (const { kind, name } of entities) {
      this.#leave({ kind, name }, 'another change came first')
    }
  }

  #leave(entity: EntityName, reason: string): void {
    this.#stale.set(entityKey(entity), entity)
    this.#add(entityKey(entity), reason)
  }

  clear(): void {
    this.#parts.clear()
    this.#stale.clear()
    this.#whole = undefined
  }

  refuse({ audit, changes }: PolicyTransaction, problems: readonly PolicyFault[]): void {
    const reason = problems[0] === undefined ? 'it does not fit' : `${problems[0].path}: ${problems[0].message}`
    this.#log.error(
      { change: audit.id, by: audit.by, entities: changes.length, problems: problems.slice(0, problemsLogged) },
      'policy change skipped: it does not fit the current policy',
    )
    for (const { kind, name } of changes) this.#leave({ kind, name }, reason)
    this.#problemsOf.set(audit.id, problems)
    const [oldest] = this.#problemsOf.keys()
    if (this.#problemsOf.size > changesMax && oldest !== undefined) this.#problemsOf.delete(oldest)
  }

  /** Subjects and keys that do not fit the definitions. */
  leftOut(faults: readonly PolicyFault[]): void {
    if (faults.length === 0) return
    this.#log.error({ parts: faults.length, problems: faults.slice(0, problemsLogged) }, 'parts of the policy skipped')
    for (const { path, message } of faults) this.#add(path, message)
  }

  unusable(topic: string, problems: readonly PolicyFault[]): void {
    const [first] = problems
    this.#log.error({ topic, problems: problems.slice(0, problemsLogged) }, 'the topic holds no usable policy')
    this.#whole = `${topic} holds no usable policy: ${first === undefined ? 'it does not fit' : `${first.path}: ${first.message}`}`
  }

  /** These are in force now. */
  fixed(changes: readonly EntityChange[]): void {
    if (this.#parts.size + this.#stale.size === 0) return
    for (const change of changes) {
      this.#parts.delete(entityKey(change))
      this.#stale.delete(entityKey(change))
      for (const path of this.#parts.keys()) if (isAbout(path, change.name)) this.#parts.delete(path)
    }
  }

  #add(part: string, reason: string): void {
    if (this.#parts.size < partsMax) this.#parts.set(part, reason)
  }
}

/** A fault's path names its subject or key: `subjects.acme.plan`. */
const isAbout = (path: string, name: string) => !path.includes('/') && path.includes(name)
