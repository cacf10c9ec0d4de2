/** What kafkajs hands over for each record of a batch. */
export interface RecordFields {
  readonly offsetDelta?: number
  readonly timestampDelta?: number
  readonly key?: Buffer | string | null
  readonly value: Buffer | string | null
  readonly headers?: object
}

/** As much of an encoder of kafkajs's as those who gather records look at. */
export interface EncodedRecord {
  readonly buf: Buffer
  readonly buffer: Buffer
}

/** ZigZag numbers below this fit 31 bits, so that shifts keep them exact. */
const plainMax = 2 ** 30

/** Whether `encodeRecord` can write it; few others occur: those with headers, and of times that go back or are far apart. */
export function isPlainRecord({ headers, timestampDelta = 0, offsetDelta = 0 }: RecordFields): boolean {
  const isPlain = Number.isInteger(timestampDelta) && timestampDelta >= 0 && timestampDelta < plainMax
  return isPlain && offsetDelta >= 0 && offsetDelta < plainMax && (headers === undefined || !hasAny(headers))
}

function hasAny(headers: object): boolean {
  for (const _ in headers) return true
  return false
}

const zigZag = (value: number) => (value << 1) ^ (value >> 31)

/** Bytes of a number as `writeNumber` writes it; it must be below 2^30. */
export function sizeOf(value: number): number {
  let bytes = 1
  for (let rest = zigZag(value) >>> 7; rest !== 0; rest >>>= 7) bytes += 1
  return bytes
}

/** Kafka's variable-length number. Gives the place behind it. */
export function writeNumber(target: Buffer, at: number, value: number): number {
  let rest = zigZag(value)
  while (rest > 0x7f) {
    target[at++] = (rest & 0x7f) | 0x80
    rest >>>= 7
  }
  target[at++] = rest
  return at
}

type Bytes = Buffer | string | null | undefined

/** -1 for none, as Kafka writes it; none takes no room beside its length. */
function lengthOf(bytes: Bytes): number {
  if (bytes === null || bytes === undefined) return -1
  return typeof bytes === 'string' ? Buffer.byteLength(bytes) : bytes.length
}

function writeBytes(target: Buffer, start: number, bytes: Bytes, length: number): number {
  const at = writeNumber(target, start, length)
  if (bytes === null || bytes === undefined) return at
  if (typeof bytes !== 'string') bytes.copy(target, at)
  // As many bytes as characters: all ASCII, which is copied without looking at each.
  else if (length === bytes.length) target.write(bytes, at, length, 'latin1')
  else target.write(bytes, at, length, 'utf8')
  return at + length
}

/**
 * A plain record in the form of Kafka's message format 2. Byte for byte what kafkajs writes, which for each number makes a list, a
 * buffer and, for times, a dozen big integers.
 */
export function encodeRecord({ offsetDelta = 0, timestampDelta = 0, key, value }: RecordFields): EncodedRecord {
  const keyLength = lengthOf(key)
  const valueLength = lengthOf(value)
  const ends = 2 // attributes before, the count of headers behind: none of either
  const numbers = sizeOf(timestampDelta) + sizeOf(offsetDelta) + sizeOf(keyLength) + sizeOf(valueLength)
  const body = ends + numbers + Math.max(0, keyLength) + Math.max(0, valueLength)
  const buffer = Buffer.allocUnsafe(sizeOf(body) + body)
  let at = writeNumber(buffer, 0, body)
  buffer[at++] = 0
  at = writeNumber(buffer, at, timestampDelta)
  at = writeNumber(buffer, at, offsetDelta)
  at = writeBytes(buffer, at, key, keyLength)
  at = writeBytes(buffer, at, value, valueLength)
  buffer[at] = 0
  return { buf: buffer, buffer }
}
