import type { Encoder } from '@weir/contracts/commit-metadata.v2.ts'
import { kindOf, numberOf, parseGap, parseMark } from '@weir/contracts/journal.v1.ts'
import { formatTs, parseTs } from '@weir/contracts/timestamp.ts'
import { LineBuffer } from './line-buffer.ts'
import type { BlockRecord, BookkeepingRows, DeadLetter, MonthLines, WatermarkRow } from './ports.ts'
import type { RecordKind } from './record-kinds.ts'
import { isOneObject } from './scan-object.ts'
import { type JournalCursor, type MissingRange, type SequenceTracker, tailBytes } from './sequence-tracker.ts'

/** One block, ready to be inserted. Building it again from the same records and earlier numbers gives the same. */
export interface InsertBlock {
  /** One insert for each month, in order: ClickHouse would deduplicate the parts of two months separately. */
  readonly months: readonly MonthLines[]
  readonly encoder: Encoder
  readonly rows: number
  readonly duplicates: number
  /** Numbers that the block's records prove lost. */
  readonly missing: readonly MissingRange[]
  readonly deadLetters: readonly DeadLetter[]
  /** The highest offset that ClickHouse has once the block is inserted. */
  readonly insertedUpTo: number
  /** Rows about the block for other tables, to be inserted after its own. */
  readonly bookkeeping: BookkeepingRows
}

/** What a block is built with. */
export interface BlockOptions {
  readonly kind: RecordKind
  readonly encoder: Encoder
  readonly topicId: string
  readonly partition: number
  readonly sequences: SequenceTracker
  /** The highest offset that ClickHouse has without the block. */
  readonly insertedUpTo: number
  /** The time that replicas of a cluster are given, so that all of them get the same bytes; else ClickHouse's own. */
  readonly receivedAtMs?: number | undefined
}

/** How our encoders begin a record: id and time are at fixed offsets. */
const head = Buffer.from('{"v":1,"id":"')
const betweenIdAndTime = Buffer.from('","ts":"')
const timeAt = head.length + 36 + betweenIdAndTime.length
const monthLength = '2026-01'.length
const quoteAndNumberMin = 2
const digitsMax = 15
/** Watermarks or duplicates that the next start reads again, so that not each second's get a row of their own. */
const offsetsReadAgainMax = 1_000
const noJournal = '00000000-0000-0000-0000-000000000000'
/** A watermark has the time at which it was written; one further ahead of the broker's clock is refused. */
const watermarkAheadMsMax = 3_600_000

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
  readonly #watermarks = new Map<string, WatermarkRow>()
  readonly #gaps: object[] = []
  readonly #numbers: object[] = []
  readonly deadLetters: DeadLetter[] = []
  readonly missing: MissingRange[] = []
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
    const reason = record.fault ?? (value === null ? 'no value' : this.#addOther(record, value))
    if (reason !== undefined) this.#refuse(record, reason)
  }

  /** Returns why the record is refused, if it is. */
  #addOther(record: BlockRecord, value: Buffer): string | undefined {
    const kind = kindOf(value)
    if (kind === 'record') return this.#addSlowly(record, value)
    return kind === 'mark' ? this.#addWatermark(record, value) : this.#addGap(record, value)
  }

  /** Adds a record without parsing it, as nearly all are. Returns false if it is not as our encoders write records. */
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
    const cursor = this.#options.sequences.findByTail(bytes, at + 1 - tailBytes)
    if (cursor === undefined) return false
    const lines = this.#linesAt(bytes, valueStart + timeAt)
    if (lines === undefined) return false
    if (!this.#accept(cursor, seq, position)) return true
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
    const { topicId, partition, receivedAtMs } = this.#options
    const receivedAt = receivedAtMs === undefined ? '' : `,"received_at":"${formatTs(receivedAtMs)}"`
    const lines = new LineBuffer(
      `${receivedAt},"topic_id":"${topicId}","partition":${partition},"offset":`,
      this.#months.size === 0 ? this.#bytesExpected : 0, // another month is rare, and grows by itself
    )
    this.#months.set(month, lines)
    return lines
  }

  #accept(cursor: JournalCursor, seq: number, position: number): boolean {
    const isNew = this.#options.sequences.accept(cursor, seq, position, this.missing)
    if (!isNew) this.duplicates += 1
    return isNew
  }

  #addSlowly(record: BlockRecord, value: Buffer): string | undefined {
    const row = this.#options.kind.read(value)
    if (row.kind === 'unreadable') return row.reason
    if (!this.#accept(this.#options.sequences.find(row.journal), row.seq, record.position)) return undefined
    const wellFormed = (_: string, part: unknown) => (typeof part === 'string' ? part.toWellFormed() : part)
    const line = Buffer.from(JSON.stringify(row.fields, wellFormed))
    this.#linesOf(row.ts.slice(0, monthLength)).add(line, 0, line.length - 1, record.position)
    this.#lastRow = record.position
    return undefined
  }

  #refuse(record: BlockRecord, reason: string): void {
    const { position, value, fault } = record
    const number = value === null || fault !== undefined ? undefined : numberOf(value)
    const isNumbered = this.#options.sequences.acceptUnreadable(number, position)
    const known = isNumbered ? number : undefined
    this.deadLetters.push({ message: record, reason })
    if (known !== undefined) this.#addNumber(known.journal, known.seq, position)
    this.#gaps.push({
      ...this.#topicPartition(),
      cause: 'dead_letter',
      journal: known?.journal ?? noJournal,
      from_seq: known?.seq ?? 0,
      to_seq: known?.seq ?? 0,
      from_offset: position,
      to_offset: position,
      count: 1,
      detail: reason.slice(0, 500),
      from_ts: formatTs(record.timestampMs),
      to_ts: formatTs(record.timestampMs),
    })
  }

  #addWatermark(record: BlockRecord, value: Buffer): string | undefined {
    const mark = parseMark(value)
    if (mark === undefined) return 'an unreadable watermark'
    const { journal, seq, end } = mark
    if (!/^[0-9a-f-]{36}$/.test(journal) || (parseTs(mark.mark) ?? 0) > record.timestampMs + watermarkAheadMsMax) {
      return 'a watermark without a journal, or with a time in the future'
    }
    const { topic, partition } = this.#topicPartition()
    this.#watermarks.set(journal, { topic, partition, journal, mark: mark.mark, seq, end })
    return undefined
  }

  #addGap(record: BlockRecord, value: Buffer): string | undefined {
    const gap = parseGap(value)
    if (gap === undefined || !/^[0-9a-f-]{36}$/.test(gap.journal)) {
      return 'an unreadable gap record'
    }
    const { journal, seq, count, detail } = gap
    if (!this.#accept(this.#options.sequences.find(journal), seq, record.position)) return undefined
    this.#addNumber(journal, seq, record.position)
    this.#gaps.push({
      ...this.#topicPartition(),
      cause: gap.gap,
      journal,
      from_seq: seq,
      to_seq: seq,
      from_offset: 0,
      to_offset: 0,
      count,
      detail,
      from_ts: gap.from,
      to_ts: gap.to,
    })
    return undefined
  }

  #topicPartition() {
    const { kind, topicId, partition } = this.#options
    return { topic: kind.topic, topic_id: topicId, partition }
  }

  #addNumber(journal: string, seq: number, position: number): void {
    const span = { from_offset: position, to_offset: position, from_seq: seq, to_seq: seq }
    this.#numbers.push({ ...this.#topicPartition(), journal, ...span })
  }

  finish(first: BlockRecord, last: BlockRecord): InsertBlock {
    const at = formatTs(last.timestampMs)
    for (const { journal, fromSeq, toSeq, count } of this.missing) {
      this.#gaps.push({
        ...this.#topicPartition(),
        cause: 'lost',
        journal,
        from_seq: fromSeq,
        to_seq: toSeq,
        from_offset: 0,
        to_offset: 0,
        count,
        from_ts: formatTs(first.timestampMs),
        to_ts: at,
        detail: 'numbers that never came',
      })
    }
    // Keeps the highest offset in ClickHouse near the last record that was processed, also where no record is a row.
    const isFar = last.position - Math.max(this.#lastRow, this.#options.insertedUpTo) >= offsetsReadAgainMax
    if (this.deadLetters.length > 0 || this.#numbers.length > 0 || isFar) this.#addNumber(noJournal, 0, last.position)
    const isNumbered = this.#numbers.length > 0
    const months = [...this.#months].filter(([, lines]) => lines.rows > 0)
    return {
      months: months.sort(([a], [b]) => (a < b ? -1 : 1)).map(([month, { lines, rows }]) => ({ month, lines, rows })),
      encoder: this.#options.encoder,
      rows: months.reduce((sum, [, { rows }]) => sum + rows, 0),
      duplicates: this.duplicates,
      missing: this.missing,
      deadLetters: this.deadLetters,
      insertedUpTo: isNumbered ? last.position : Math.max(this.#lastRow, this.#options.insertedUpTo),
      bookkeeping: { numbers: this.#numbers, marks: [...this.#watermarks.values()], gaps: this.#gaps },
    }
  }
}

/** What is spliced into each line, and room for the digits. */
const spliceBytes = 110

/**
 * Builds a block of records of one partition, at least one, in the order of their offsets. Moves the sequence tracker
 * on: the caller commits it when the block is inserted, and rolls it back when it is not.
 */
export function buildBlock(records: readonly BlockRecord[], options: BlockOptions): InsertBlock {
  const [first] = records
  const last = records.at(-1)
  if (first === undefined || last === undefined) throw new Error('a block has at least one record')
  let bytes = 0
  for (const { valueStart, valueEnd } of records) bytes += valueEnd - valueStart + spliceBytes
  const builder = new BlockBuilder(options, bytes)
  for (const record of records) builder.add(record)
  return builder.finish(first, last)
}
