import { parseDecision } from '@weir/contracts/decision.v1.ts'
import { topics } from '@weir/contracts/topics.ts'
import { uuidv5 } from '@weir/core/ids.ts'
import type { DeadLetter } from './dead-letters.ts'

/** The namespace of the ids of replays; it never changes. */
const namespace = '6f6b0b0e-6d0e-4c55-9a1e-5d1a4f1f7c52'

/** A dead letter as a record that can be read. */
export interface Replay {
  readonly key: string
  readonly value: string
  /** A journal of the record's own, in which it has number 0: metering counts it once, however often it is sent. */
  readonly journal: string
}

/** A replay, or why the dead letter is still no record. */
export type PlannedReplay =
  | { readonly kind: 'replay'; readonly replay: Replay }
  | { readonly kind: 'refused'; readonly why: string }

const refused = (why: string): PlannedReplay => ({ kind: 'refused', why })

function fieldsOf(value: string): Readonly<Record<string, unknown>> | undefined {
  try {
    const parsed: unknown = JSON.parse(value)
    return typeof parsed === 'object' && parsed !== null && !Array.isArray(parsed) ? { ...parsed } : undefined
  } catch {
    return undefined
  }
}

/**
 * Makes the record that replays a dead letter: the letter, or the corrected text instead, with an id, a journal and a
 * sequence number that follow from the letter's topic, partition and offset. So every replay of one letter is the same
 * record, and counts once. An outcome keeps its id, by which it belongs to a decision.
 */
export function planReplay(letter: DeadLetter, topicId: string, corrected: string | undefined): PlannedReplay {
  const { topic, partition, offset } = letter
  const value = corrected ?? letter.value?.toString('utf8')
  const fields = value === undefined ? undefined : fieldsOf(value)
  if (fields === undefined) return refused('it is no JSON object')
  const place = `${topicId}:${partition}:${offset}`
  const journal = uuidv5(namespace, `journal:${place}`)
  const { journal: _, seq: __, ...rest } = fields
  const id = topic === topics.decisions ? uuidv5(namespace, place) : rest.id
  const record = Buffer.from(JSON.stringify({ ...rest, id, journal, seq: 0 }))
  if (topic === topics.decisions) {
    const parsed = parseDecision(record)
    if (parsed.kind === 'unreadable') return refused(parsed.reason)
  }
  const { subject } = rest
  if (typeof subject !== 'string') return refused('field subject is missing or wrong')
  return { kind: 'replay', replay: { key: subject, value: record.toString('utf8'), journal } }
}
