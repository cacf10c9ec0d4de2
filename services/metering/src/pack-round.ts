import type { OffsetRange } from '@weir/contracts/commit-metadata.v2.ts'
import type { BlockSize } from './block-size.ts'
import type { BlockRecord } from './ports.ts'

/** What a partition brings to a round. */
export interface Fetched<Owner> {
  readonly owner: Owner
  readonly partition: number
  /** Where the partition is committed. */
  readonly from: bigint
  /** In the order of their offsets, at least one. */
  readonly records: readonly BlockRecord[]
  /** Its rows cannot be told from older ones: it shares no block. */
  readonly isAlone: boolean
}

/** The part of a block that is of one partition. */
export interface Portion<Owner> {
  readonly owner: Owner
  readonly range: OffsetRange
  readonly records: readonly BlockRecord[]
}

/** Bounds of a round's blocks. */
export interface PackLimits extends BlockSize {
  /** Partitions of a block: each is some 20 bytes of the metadata that declares it. */
  readonly ranges: number
  /** Lanes of a round: blocks that are inserted concurrently. */
  readonly lanes: number
}

/** A further lane is opened only for a third of a full block: the work of an insert is in its parts, not its rows. */
const laneShare = 1 / 3

/** Deals partitions out to lanes, the largest first, each to the lane that has least. */
function dealOut<Owner>(fetched: readonly Fetched<Owner>[], limits: PackLimits): Fetched<Owner>[][] {
  const total = fetched.reduce((sum, { records }) => sum + records.length, 0)
  const wanted = Math.floor(total / Math.max(1, limits.records * laneShare))
  const count = Math.max(1, Math.min(limits.lanes, fetched.length, wanted))
  const lanes = Array.from({ length: count }, () => ({ records: 0, fetched: [] as Fetched<Owner>[] }))
  for (const one of [...fetched].sort((a, b) => b.records.length - a.records.length)) {
    const lane = lanes.reduce((least, other) => (other.records < least.records ? other : least))
    lane.records += one.records.length
    lane.fetched.push(one)
  }
  return lanes.map((lane) => lane.fetched.sort((a, b) => a.partition - b.partition))
}

/** Packs the partitions of one lane into blocks, one behind the other. */
class LanePacker<Owner> {
  readonly blocks: Portion<Owner>[][] = []
  readonly #limits: PackLimits
  #block: Portion<Owner>[] = []
  #records = 0
  #bytes = 0

  constructor(limits: PackLimits) {
    this.#limits = limits
  }

  close(): void {
    if (this.#block.length > 0) this.blocks.push(this.#block)
    this.#block = []
    this.#records = 0
    this.#bytes = 0
  }

  add({ owner, partition, from, records }: Fetched<Owner>): void {
    let next = from
    for (let at = 0; at < records.length; ) {
      const end = this.#fill(records, at)
      if (end > at) {
        const portion = records.slice(at, end)
        const to = BigInt(portion.at(-1)?.position ?? 0)
        this.#block.push({ owner, range: { partition, from: next, to }, records: portion })
        next = to + 1n
        at = end
      }
      if (at < records.length || this.#block.length >= this.#limits.ranges) this.close()
    }
  }

  /** Returns up to where records from `at` on fit into the block. A record that alone exceeds a block is a block. */
  #fill(records: readonly BlockRecord[], at: number): number {
    let end = at
    for (; end < records.length && this.#records < this.#limits.records; end += 1) {
      const { valueStart, valueEnd } = records[end] ?? { valueStart: 0, valueEnd: 0 }
      if (this.#records > 0 && this.#bytes + valueEnd - valueStart > this.#limits.bytes) break
      this.#records += 1
      this.#bytes += valueEnd - valueStart
    }
    return end
  }
}

/**
 * Packs what a round brought into blocks: lanes that are inserted concurrently, each a list of blocks one behind the
 * other. A partition is in one lane, and in a block at most once.
 */
export function packRound<Owner>(fetched: readonly Fetched<Owner>[], limits: PackLimits): Portion<Owner>[][][] {
  if (fetched.length === 0) return []
  return dealOut(fetched, limits).map((lane) => {
    const packer = new LanePacker<Owner>(limits)
    for (const one of lane) {
      if (one.isAlone) packer.close()
      packer.add(one)
      if (one.isAlone) packer.close()
    }
    packer.close()
    return packer.blocks
  })
}
