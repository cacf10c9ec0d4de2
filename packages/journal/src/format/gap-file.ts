import { closeSync, openSync, readFileSync, write, writeSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { crc32c } from '@node-rs/crc32'
import { encodeGapOpen } from '@weir/contracts/journal.v1.ts'

const writeToDisk = promisify(write)

/** The file in a journal's directory. */
export const gapName = 'gap'

/** Written alternately, so that one of them is whole at any time. */
const slotBytes = 64
const slots = 2

/** Decisions answered without a record, since the last gap record. */
export interface Gap {
  /** Told apart from those before it, so that none becomes two records. */
  readonly generation: number
  readonly count: number
  readonly fromMs: number
  readonly toMs: number
}

const numbersOf = ({ generation, count, fromMs, toMs }: Gap) => [generation, count, fromMs, toMs]

function encodeSlot(gap: Gap, version: number): Buffer {
  const slot = Buffer.alloc(slotBytes)
  for (const [index, number] of [version, ...numbersOf(gap)].entries()) slot.writeDoubleLE(number, 8 + index * 8)
  slot.writeUInt32LE(crc32c(slot.subarray(8)), 0)
  return slot
}

function decodeSlot(slot: Buffer): { readonly version: number; readonly gap: Gap } | undefined {
  if (slot.length < slotBytes || slot.readUInt32LE(0) !== crc32c(slot.subarray(8))) return undefined
  const at = (index: number) => slot.readDoubleLE(8 + index * 8)
  return { version: at(0), gap: { generation: at(1), count: at(2), fromMs: at(3), toMs: at(4) } }
}

const emptyGap: Gap = { generation: 1, count: 0, fromMs: 0, toMs: 0 }

/** Returns what a directory's gap file counts. */
export function readGap(directory: string): Gap {
  try {
    const page = readFileSync(join(directory, gapName))
    const [a, b] = [decodeSlot(page.subarray(0, slotBytes)), decodeSlot(page.subarray(slotBytes))]
    return ((a?.version ?? -1) > (b?.version ?? -1) ? a : b)?.gap ?? emptyGap
  } catch {
    return emptyGap
  }
}

/**
 * The gap's record, open for journal and number. Every process writes the same detail, so that a repeat is the same
 * record.
 */
export function gapOpenLine({ count, fromMs, toMs }: Gap): string {
  return encodeGapOpen({
    cause: 'journal_full',
    count,
    fromMs,
    toMs,
    detail: 'answered while the journal accepted no records',
  })
}

/** The file has its full size from the start, so that counting needs no space when the disk is full. */
export class GapFile {
  readonly #fd: number
  #version = 0
  #gap = emptyGap
  #isWritten = true
  #writing: Promise<unknown> | undefined

  constructor(directory: string) {
    this.#fd = openSync(join(directory, gapName), 'w', 0o600)
    for (let slot = 0; slot < slots; slot += 1) this.#put(slot)
  }

  #put(slot: number): void {
    const bytes = encodeSlot(this.#gap, this.#version)
    const written = writeSync(this.#fd, bytes, 0, slotBytes, slot * slotBytes)
    if (written !== slotBytes) throw new Error(`wrote ${written} of ${slotBytes} bytes of the gap file`)
  }

  get gap(): Gap {
    return this.#gap
  }

  count(decisions: number, ms: number): void {
    const { generation, count, fromMs, toMs } = this.#gap
    const isFirst = count === 0
    this.#gap = {
      generation,
      count: count + decisions,
      fromMs: isFirst ? ms : Math.min(fromMs, ms),
      toMs: isFirst ? ms : Math.max(toMs, ms),
    }
    this.#isWritten = false
  }

  /** So much of it has become a record, which is in the file; what came meanwhile is of the next generation. */
  begin(recorded: Gap): void {
    const { generation, count, toMs } = this.#gap
    const left = count - recorded.count
    this.#gap = left === 0 ? emptyGap : { generation, count: left, fromMs: recorded.toMs, toMs }
    this.#gap = { ...this.#gap, generation: recorded.generation + 1 }
    this.#isWritten = false
  }

  /**
   * Writes what was counted; throws what the disk says. Not while `writeLater` is at it: the older one might come last.
   */
  write(): void {
    if (this.#isWritten || this.#writing !== undefined) return
    this.#version += 1
    this.#put(this.#version % slots)
    this.#isWritten = true
  }

  /** The same around the main thread, for a disk that is slow. */
  async writeLater(): Promise<void> {
    if (this.#isWritten || this.#writing !== undefined) return
    this.#version += 1
    this.#isWritten = true
    const bytes = encodeSlot(this.#gap, this.#version)
    this.#writing = writeToDisk(this.#fd, bytes, 0, slotBytes, (this.#version % slots) * slotBytes)
    try {
      await this.#writing
    } catch (error) {
      this.#isWritten = false
      throw error
    } finally {
      this.#writing = undefined
    }
  }

  /** Writes what was counted last; rejects with what the disk says. */
  async close(): Promise<void> {
    try {
      await this.#writing?.catch(() => undefined)
      await this.writeLater()
    } finally {
      closeSync(this.#fd)
    }
  }
}
