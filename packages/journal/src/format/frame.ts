import { crc32c } from '@node-rs/crc32'

/**
 * What stands in a journal. A sum is opened, added to once a turn, and closed: from its close on it is a record with
 * all that was added as its count. A dropped sum counted nothing. A close may have a key: the text after the count, as
 * it is by then.
 */
export const frameKinds = { record: 1, sumOpen: 2, sumAdd: 3, sumClose: 4, sumDrop: 5, gap: 6 } as const
/** One of `frameKinds`. */
export type FrameKind = (typeof frameKinds)[keyof typeof frameKinds]

/** The head of a frame to be written. */
export interface FrameHead {
  readonly kind: FrameKind
  readonly topic: number
  readonly partition: number
  /** Of a record, its number in its partition; of a sum's frames but the close, the number of the sum. */
  readonly seq: number
}

/**
 * Little-endian: u32 length of what follows the checksum, u32 CRC32C of it, u8 kind, u8 topic, u16 partition, u64
 * number, f64 time of the turn, u32 epoch, u16 length of the key; then key and value.
 */
export interface Frame extends FrameHead {
  readonly appendedMs: number
  /**
   * Raised whenever the writer takes back what a failing disk may have kept: a lower one after a higher one is such a
   * remainder.
   */
  readonly epoch: number
  readonly key: Buffer
  readonly value: Buffer
}

/** Whether it makes a record, and bears that record's number in its partition. */
export const isNumbered = ({ kind }: Pick<Frame, 'kind'>): boolean =>
  kind === frameKinds.record || kind === frameKinds.gap || kind === frameKinds.sumClose

const prefixBytes = 8
/** A frame's bytes before its key. */
export const headerBytes = 34

/** No frame is longer: a record is at most 900 kB, and this finds a damaged length early. */
const frameBytesMax = 2 * 1024 * 1024

const two32 = 0x1_0000_0000

/** Frames written one after the other into one buffer, for one position in one segment. */
export class FrameBuffer {
  readonly bytes: Buffer
  readonly #view: DataView
  length = 0

  constructor(capacity: number) {
    this.bytes = Buffer.allocUnsafeSlow(capacity)
    this.#view = new DataView(this.bytes.buffer)
  }

  hasSpace(size: number): boolean {
    return this.length + size <= this.bytes.length
  }

  /**
   * The caller has made sure of the space. `textBytes` are those of key and value together; where that is their length
   * they are plain ASCII, as nearly all are, and a third of the time of UTF-8 is enough.
   */
  put(
    head: FrameHead,
    ms: number,
    epoch: number,
    key: string,
    keyBytes: number,
    value: string,
    textBytes: number,
  ): void {
    const at = this.length
    const view = this.#view
    const size = headerBytes + textBytes
    view.setUint32(at, size - prefixBytes, true)
    view.setUint8(at + 8, head.kind)
    view.setUint8(at + 9, head.topic)
    view.setUint16(at + 10, head.partition, true)
    view.setUint32(at + 12, head.seq % two32, true)
    view.setUint32(at + 16, Math.floor(head.seq / two32), true)
    view.setFloat64(at + 20, ms, true)
    view.setUint32(at + 28, epoch, true)
    view.setUint16(at + 32, keyBytes, true)
    if (key.length + value.length === textBytes) this.bytes.write(key + value, at + headerBytes, 'latin1')
    else this.bytes.write(key + value, at + headerBytes, 'utf8')
    view.setUint32(at + 4, crc32c(this.bytes.subarray(at + prefixBytes, at + size)), true)
    this.length = at + size
  }
}

/** What stands at a position: a frame, zeros (nothing was written there yet), not all of a frame, or something else. */
export type FrameAt =
  | { readonly kind: 'frame'; readonly frame: Frame; readonly next: number }
  | { readonly kind: 'zeros' }
  | { readonly kind: 'short'; readonly bytes: number }
  | { readonly kind: 'damaged' }

const isKind = (kind: number): kind is FrameKind => kind >= frameKinds.record && kind <= frameKinds.gap

const damaged = { kind: 'damaged' } as const

/** Reads the frame at `at` of what ends at `bytes.length`. Key and value are views of `bytes`. */
export function frameAt(bytes: Buffer, at: number): FrameAt {
  if (at + prefixBytes > bytes.length) return { kind: 'short', bytes: prefixBytes }
  const length = bytes.readUInt32LE(at)
  const crc = bytes.readUInt32LE(at + 4)
  if (length === 0 && crc === 0) return { kind: 'zeros' }
  if (length < headerBytes - prefixBytes || length > frameBytesMax) return damaged
  const next = at + prefixBytes + length
  if (next > bytes.length) return { kind: 'short', bytes: prefixBytes + length }
  const kind = bytes.readUInt8(at + 8)
  const keyEnd = at + headerBytes + bytes.readUInt16LE(at + 32)
  if (!isKind(kind) || keyEnd > next) return damaged
  if (crc32c(bytes.subarray(at + prefixBytes, next)) !== crc) return damaged
  const frame = {
    kind,
    topic: bytes.readUInt8(at + 9),
    partition: bytes.readUInt16LE(at + 10),
    seq: bytes.readUInt32LE(at + 16) * two32 + bytes.readUInt32LE(at + 12),
    appendedMs: bytes.readDoubleLE(at + 20),
    epoch: bytes.readUInt32LE(at + 28),
    key: bytes.subarray(at + headerBytes, keyEnd),
    value: bytes.subarray(keyEnd, next),
  }
  return { kind: 'frame', frame, next }
}
