import { type Checks, isCount, isOneOf, isText, isTs, parseJson, wrongField } from './fields.ts'
import { jsonText } from './json-text.ts'
import { formatTs } from './timestamp.ts'

/**
 * The topics of decisions and of outcomes also carry watermarks (`mark`) and gap records of journals. A reader tells
 * the three apart by `kindOf` and skips what it does not need.
 */
export type RecordKind = 'record' | 'mark' | 'gap'

/**
 * "Every record of this journal from before `mark` precedes this record in this partition, and has a number below
 * `seq`." Written into each partition once a second while the journal has records, every five seconds otherwise. Not
 * numbered itself.
 */
export interface MarkV1 {
  readonly v: 1
  /** `YYYY-MM-DD hh:mm:ss.SSS`, UTC, by the clock of the journal's process. */
  readonly mark: string
  readonly journal: string
  readonly seq: number
  /** Nothing of this journal comes after it in any partition of the topic. */
  readonly end: boolean
}

/**
 * `journal_full`: decisions answered without a record because the journal was full. `refused`: a record that Kafka
 * refused for good.
 */
export type GapCause = 'journal_full' | 'refused'

/** Replaces records that will never come, under a number of its own. */
export interface GapV1 {
  readonly v: 1
  readonly gap: GapCause
  /** Decisions that it replaces. */
  readonly count: number
  /** First and last of them, as `mark`. */
  readonly from: string
  readonly to: string
  /** A text for people: where the record is kept, and Kafka's answer. */
  readonly detail: string
  readonly journal: string
  readonly seq: number
}

/** Encodes a watermark. */
export const encodeMark = (tsMs: number, journal: string, seq: number, end: boolean): string =>
  `{"v":1,"mark":"${formatTs(tsMs)}","journal":"${journal}","seq":${seq},"end":${end}}`

/** Like `encodeDecisionOpen`: `journal`, `seq` and the closing brace are added by the journal, which numbers it. */
export function encodeGapOpen(gap: {
  readonly cause: GapCause
  readonly count: number
  readonly fromMs: number
  readonly toMs: number
  readonly detail: string
}): string {
  return `{"v":1,"gap":"${gap.cause}","count":${gap.count},"from":"${formatTs(gap.fromMs)}","to":"${formatTs(gap.toMs)}","detail":${jsonText(gap.detail)}`
}

const markStart = Buffer.from('{"v":1,"mark":')
const gapStart = Buffer.from('{"v":1,"gap":')

const startsWith = (value: Buffer, start: Buffer) =>
  value.length > start.length && value.compare(start, 0, start.length, 0, start.length) === 0

/**
 * Returns the kind of a value by its first bytes, as our own encoders write them. Any other value counts as a record,
 * for its own reader to judge.
 */
export function kindOf(value: Buffer): RecordKind {
  if (startsWith(value, markStart)) return 'mark'
  return startsWith(value, gapStart) ? 'gap' : 'record'
}

/** The number that a record ends with. */
export interface Numbered {
  /** A UUID in lower case. */
  readonly journal: string
  readonly seq: number
}

const tail = /,"journal":"([0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12})","seq":(\d{1,15})\}$/
/** The longest text that the pattern above matches. */
const tailBytesMax = 80

/**
 * Journal and number, read from the last bytes without parsing the rest; undefined when it does not end as our encoders
 * end it.
 */
export function numberOf(value: Buffer): Numbered | undefined {
  const found = tail.exec(value.toString('latin1', Math.max(0, value.length - tailBytesMax)))
  const [, journal, seq] = found ?? []
  return journal === undefined || seq === undefined ? undefined : { journal, seq: Number(seq) }
}

const isFlag = isOneOf([true, false])
const markFields: Checks<keyof MarkV1> = { v: isOneOf([1]), mark: isTs, journal: isText, seq: isCount, end: isFlag }
const gapFields: Checks<keyof GapV1> = {
  v: isOneOf([1]),
  gap: isOneOf(['journal_full', 'refused']),
  count: isCount,
  from: isTs,
  to: isTs,
  detail: isText,
  journal: isText,
  seq: isCount,
}
const isMark = (value: unknown): value is MarkV1 => wrongField(value, markFields) === undefined
const isGap = (value: unknown): value is GapV1 => wrongField(value, gapFields) === undefined

/** Reads a watermark; undefined when it is none, or malformed. */
export function parseMark(value: Buffer): MarkV1 | undefined {
  const mark = parseJson(value.toString('utf8'))
  return isMark(mark) ? mark : undefined
}

/** Reads a gap record; undefined when it is none, or malformed. */
export function parseGap(value: Buffer): GapV1 | undefined {
  const gap = parseJson(value.toString('utf8'))
  return isGap(gap) ? gap : undefined
}
