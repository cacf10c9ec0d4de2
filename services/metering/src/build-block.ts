import type { Encoder } from '@weir/contracts/commit-note.v1.ts'
import { kindOf, numberOf, parseGap, parseMark } from '@weir/contracts/journal.v1.ts'
import { formatTs, parseTs } from '@weir/contracts/timestamp.ts'
import { LineBuffer } from './line-buffer.ts'
import { type JournalState, type Lost, type Numbering, tailBytes } from './numbering.ts'
import type { BlockRecord, DeadLetter, MarkRow, MonthLines, SideRows } from './ports.ts'
import type { RecordKind } from './record-kinds.ts'
import { isOneObject } from './scan-object.ts'

/** One block, ready to be inserted: from the records alone and what was numbered before them, so always the same again. */
export interface Block {
  /** One insert for each month, in order: an insert into two of ClickHouse's partitions would be two, each remembered by itself. */
  readonly months: readonly MonthLines[]
  readonly rows: number
  readonly duplicates: number
  readonly lost: readonly Lost[]
  readonly letters: readonly DeadLetter[]
  /** The highest offset that ClickHouse has with it. */
  readonly insertedUpTo: number
  /** Rows about the block for other tables, after its own. */
  readonly sides: SideRows
}

export interface BlockOptions {
  readonly kind: RecordKind
  readonly encoder: Encoder
  readonly topicId: string
  readonly partition: number
  readonly numbering: Numbering
  /** The highest offset that ClickHouse has without it. */
  readonly insertedUpTo: number
}

/** How our encoders begin: the id and the time stand at fixed places. */
const head = Buffer.from('{"v":1,"id":"')
const betweenIdAndTime = Buffer.from('","ts":"')
const timeAt = head.length + 36 + betweenIdAndTime.length
const monthLength = '2026-01'.length
const quoteAndNumberMin = 2
const digitsMax = 15
/** So many marks or duplicates are read again at the next start, rather than that each second's get a row of their own. */
const offsetsReadAgainMax = 1_000
const nobody = '00000000-0000-0000-0000-000000000000'
/** A mark is of the time at which it was written; more than so far ahead of the broker's clock it is no mark. */
const markAheadMsMax = 3_600_000

const matches = (bytes: Buffer, at: number, wanted: Buffer) => {
  for (let i = 0; i < wanted.length; i += 1) if (bytes[at + i] !== wanted[i]) return false
  return true
}

const isDigit = (byte: number) => byte >= 48 && byte <= 57

/** Gathers the rows of one block. */
class BlockBuilder {
  readonly #options: BlockOptions
  readonly #months = new Map<string, LineBuffer>()
  readonly #bytesExpected: number
  readonly #marks = new Map<string, MarkRow>()
  readonly #gaps: object[] = []
  readonly #numbers: object[] = []
  readonly letters: DeadLetter[] = []
  readonly lost: Lost[] = []
  duplicates = 0
  /** The month of the record before: nearly always that of the next one. */
  #month = Buffer.alloc(monthLength)
  #lines: LineBuffer | undefined
  #lastRow = -1

  constructor(options: BlockOptions, bytesExpected: number) {
    this.#options = options
    this.#bytesExpected = bytesExpected
  }

  add(record: BlockRecord): void {
    if (this.#options.encoder === 'fast' && this.#passThrough(record)) return
    const { value } = record
    const reason = value === null ? 'no value' : this.#addOther(record, value)
    if (reason !== undefined) this.#refuse(record, reason)
  }

  /** Why it is refused, if it is. */
  #addOther(record: BlockRecord, value: Buffer): string | undefined {
    const kind = kindOf(value)
    if (kind === 'record') return this.#addSlowly(record, value)
    return kind === 'mark' ? this.#addMark(record, value) : this.#addGap(record, value)
  }

  /** The way of nearly all records, in which nothing is made of them: false where one is not just as our encoders write it. */
  #passThrough({ bytes, valueStart, valueEnd, position }: BlockRecord): boolean {
    if (valueEnd - valueStart < timeAt + monthLength + tailBytes + quoteAndNumberMin) return false
    if (!matches(bytes, valueStart, head)) return false
    if (!matches(bytes, valueStart + timeAt - betweenIdAndTime.length, betweenIdAndTime)) return false
    let seq = 0
    let scale = 1
    let at = valueEnd - 2
    for (; isDigit(bytes[at] ?? 0); at -= 1) {
      seq += ((bytes[at] ?? 0) - 48) * scale
      scale *= 10
    }
    const digits = valueEnd - 2 - at
    if (digits === 0 || digits > digitsMax || !isOneObject(bytes, valueStart, valueEnd)) return false
    const state = this.#options.numbering.findByTail(bytes, at + 1 - tailBytes)
    if (state === undefined) return false
    const lines = this.#linesAt(bytes, valueStart + timeAt)
    if (lines === undefined) return false
    if (!this.#take(state, seq, position)) return true
    lines.add(bytes, valueStart, valueEnd - 1, position)
    this.#lastRow = position
    return true
  }

  #linesAt(bytes: Buffer, at: number): LineBuffer | undefined {
    if (this.#lines !== undefined && matches(bytes, at, this.#month)) return this.#lines
    const month = bytes.toString('latin1', at, at + monthLength)
    if (!/^20\d\d-(?:0[1-9]|1[0-2])$/.test(month)) return undefined
    this.#month = Buffer.from(month, 'latin1')
    this.#lines = this.#linesOf(month)
    return this.#lines
  }

  #linesOf(month: string): LineBuffer {
    const known = this.#months.get(month)
    if (known !== undefined) return known
    const { topicId, partition } = this.#options
    const lines = new LineBuffer(
      `,"topic_id":"${topicId}","partition":${partition},"offset":`,
      this.#months.size === 0 ? this.#bytesExpected : 0, // another month is rare, and grows by itself
    )
    this.#months.set(month, lines)
    return lines
  }

  #take(state: JournalState, seq: number, position: number): boolean {
    const isNew = this.#options.numbering.take(state, seq, position, this.lost)
    if (!isNew) this.duplicates += 1
    return isNew
  }

  #addSlowly(record: BlockRecord, value: Buffer): string | undefined {
    const row = this.#options.kind.read(value)
    if (row.kind === 'unreadable') return row.reason
    if (!this.#take(this.#options.numbering.find(row.journal), row.seq, record.position)) return undefined
    const wellFormed = (_: string, part: unknown) => (typeof part === 'string' ? part.toWellFormed() : part)
    const line = Buffer.from(JSON.stringify(row.fields, wellFormed))
    this.#linesOf(row.ts.slice(0, monthLength)).add(line, 0, line.length - 1, record.position)
    this.#lastRow = record.position
    return undefined
  }

  #refuse(record: BlockRecord, reason: string): void {
    const { position, value } = record
    const number = value === null ? undefined : numberOf(value)
    const isNumbered = this.#options.numbering.takeUnreadable(number, position)
    const known = isNumbered ? number : undefined
    this.letters.push({ message: record, reason })
    if (known !== undefined) this.#addNumber(known.journal, known.seq, position)
    this.#gaps.push({
      ...this.#place(),
      ...{
        cause: 'dead_letter',
        journal: known?.journal ?? nobody,
        from_seq: known?.seq ?? 0,
        to_seq: known?.seq ?? 0,
      },
      ...{ from_offset: position, to_offset: position, count: 1, detail: reason.slice(0, 500) },
      ...{ from_ts: formatTs(record.timestampMs), to_ts: formatTs(record.timestampMs) },
    })
  }

  #addMark(record: BlockRecord, value: Buffer): string | undefined {
    const mark = parseMark(value)
    if (mark === undefined) return 'a mark that cannot be read'
    const { journal, seq, end } = mark
    if (!/^[0-9a-f-]{36}$/.test(journal) || (parseTs(mark.mark) ?? 0) > record.timestampMs + markAheadMsMax) {
      return 'a mark of no journal, or of a time to come'
    }
    const { topic, partition } = this.#place()
    this.#marks.set(journal, { topic, partition, journal, mark: mark.mark, seq, end })
    return undefined
  }

  #addGap(record: BlockRecord, value: Buffer): string | undefined {
    const gap = parseGap(value)
    if (gap === undefined || !/^[0-9a-f-]{36}$/.test(gap.journal)) {
      return 'a gap that cannot be read'
    }
    const { journal, seq, count, detail } = gap
    if (!this.#take(this.#options.numbering.find(journal), seq, record.position)) return undefined
    this.#addNumber(journal, seq, record.position)
    this.#gaps.push({
      ...this.#place(),
      ...{ cause: gap.gap, journal, from_seq: seq, to_seq: seq, from_offset: 0, to_offset: 0, count, detail },
      ...{ from_ts: gap.from, to_ts: gap.to },
    })
    return undefined
  }

  #place() {
    const { kind, topicId, partition } = this.#options
    return { topic: kind.topic, topic_id: topicId, partition }
  }

  #addNumber(journal: string, seq: number, position: number): void {
    const span = { from_offset: position, to_offset: position, from_seq: seq, to_seq: seq }
    this.#numbers.push({ ...this.#place(), journal, ...span })
  }

  finish(first: BlockRecord, last: BlockRecord): Block {
    const at = formatTs(last.timestampMs)
    for (const { journal, fromSeq, toSeq, count } of this.lost) {
      this.#gaps.push({
        ...this.#place(),
        ...{ cause: 'lost', journal, from_seq: fromSeq, to_seq: toSeq, from_offset: 0, to_offset: 0, count },
        ...{ from_ts: formatTs(first.timestampMs), to_ts: at, detail: 'numbers that never came' },
      })
    }
    // So that the highest offset in ClickHouse is about that of the last record which was dealt with, also where none is a row.
    const isFar = last.position - Math.max(this.#lastRow, this.#options.insertedUpTo) >= offsetsReadAgainMax
    if (this.letters.length > 0 || this.#numbers.length > 0 || isFar) this.#addNumber(nobody, 0, last.position)
    const isNumbered = this.#numbers.length > 0
    const months = [...this.#months].filter(([, lines]) => lines.rows > 0)
    return {
      months: months.sort(([a], [b]) => (a < b ? -1 : 1)).map(([month, { lines, rows }]) => ({ month, lines, rows })),
      rows: months.reduce((sum, [, { rows }]) => sum + rows, 0),
      duplicates: this.duplicates,
      lost: this.lost,
      letters: this.letters,
      insertedUpTo: isNumbered ? last.position : Math.max(this.#lastRow, this.#options.insertedUpTo),
      sides: { numbers: this.#numbers, marks: [...this.#marks.values()], gaps: this.#gaps },
    }
  }
}

/** What is spliced into each line, and room for the digits. */
const spliceBytes = 110

/**
 * Makes a block of these records of one partition; never empty, in the order of their offsets. Moves the numbering on, which is to be kept
 * when the block is inserted or undone when it is not.
 */
export function buildBlock(records: readonly BlockRecord[], options: BlockOptions): Block {
  const [first] = records
  const last = records.at(-1)
  if (first === undefined || last === undefined) throw new Error('a block has at least one record')
  let bytes = 0
  for (const { valueStart, valueEnd } of records) bytes += valueEnd - valueStart + spliceBytes
  const builder = new BlockBuilder(options, bytes)
  for (const record of records) builder.add(record)
  return builder.finish(first, last)
}
