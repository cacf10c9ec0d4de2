import { crc32c } from '@node-rs/crc32'

/** What Kafka stores of a record: bytes as they stand in the journal. */
export interface RecordBytes {
  readonly key: Buffer
  readonly value: Buffer
}

/** ZigZag, as Kafka writes numbers that may be negative: small ones of either sign are short. Exact below 2^30. */
const zigZag = (value: number) => (value << 1) ^ (value >> 31)

/** Bytes of a number as `writeNumber` writes it; it must be below 2^30. */
function sizeOf(value: number): number {
  let bytes = 1
  for (let rest = zigZag(value) >>> 7; rest !== 0; rest >>>= 7) bytes += 1
  return bytes
}

/** Writes Kafka's variable-length number. Returns the position behind it. */
function writeNumber(target: Buffer, at: number, value: number): number {
  let rest = zigZag(value)
  while (rest > 0x7f) {
    target[at++] = (rest & 0x7f) | 0x80
    rest >>>= 7
  }
  target[at++] = rest
  return at
}

/** Everything of a batch before its records, in message format 2. */
const headerBytes = 61
/** The checksum covers all from the attributes on. */
const checkedFrom = 21
const checksumAt = 17

/**
 * Attributes before the key and the count of headers behind the value, both none; and the time's distance, which is 0.
 */
const fixedBytes = 3

const bodyBytes = ({ key, value }: RecordBytes, index: number): number =>
  fixedBytes + sizeOf(index) + sizeOf(key.length) + key.length + sizeOf(value.length) + value.length

/** The bytes that `writeBatch` writes. */
export function batchBytes(records: readonly RecordBytes[]): number {
  let bytes = headerBytes
  for (let index = 0; index < records.length; index += 1) {
    const record = records[index]
    if (record === undefined) break
    const body = bodyBytes(record, index)
    bytes += sizeOf(body) + body
  }
  return bytes
}

/**
 * One batch as Kafka stores it, all of one time; without compression, for gzip costs more processor time than it saves
 * (bench publish). Straight from the journal's bytes into the request's: kafkajs makes objects, lists and buffers for
 * each record, ten times the work. Gives the position behind it.
 */
export function writeBatch(target: Buffer, start: number, records: readonly RecordBytes[], nowMs: number): number {
  let at = start + headerBytes
  for (let index = 0; index < records.length; index += 1) {
    const record = records[index]
    if (record === undefined) break
    at = writeNumber(target, at, bodyBytes(record, index))
    target[at++] = 0
    target[at++] = 0
    at = writeNumber(target, at, index)
    at = writeNumber(target, at, record.key.length)
    target.set(record.key, at)
    at += record.key.length
    at = writeNumber(target, at, record.value.length)
    target.set(record.value, at)
    at += record.value.length
    target[at++] = 0
  }
  writeHeader(target, start, at - start, records.length, nowMs)
  return at
}

function writeHeader(target: Buffer, start: number, size: number, count: number, nowMs: number): void {
  const now = BigInt(nowMs)
  target.writeBigInt64BE(0n, start) // the broker gives the offset
  target.writeInt32BE(size - 12, start + 8)
  target.writeInt32BE(-1, start + 12) // the leader's epoch: not known
  target.writeInt8(2, start + 16)
  target.writeInt16BE(0, start + checkedFrom)
  target.writeInt32BE(count - 1, start + 23)
  target.writeBigInt64BE(now, start + 27)
  target.writeBigInt64BE(now, start + 35)
  target.writeBigInt64BE(-1n, start + 43) // no producer's id, epoch and sequence: ours are in the records
  target.writeInt16BE(-1, start + 51)
  target.writeInt32BE(-1, start + 53)
  target.writeInt32BE(count, start + 57)
  target.writeUInt32BE(crc32c(target.subarray(start + checkedFrom, start + size)), start + checksumAt)
}
