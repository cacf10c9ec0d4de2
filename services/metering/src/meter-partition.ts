import type { TopicIdPartition } from '@weir/clickhouse/number-queries.ts'
import { type Declared, type Encoder, writeNote } from '@weir/contracts/commit-note.v1.ts'
import { WeirError } from '@weir/core/errors.ts'
import { BadShare } from './bad-share.ts'
import { type BlockSize, endOfBlock, nextBlock, positionAt } from './block-size.ts'
import { BlockWriter, type WriterOptions } from './block-writer.ts'
import { type Block, buildBlock } from './build-block.ts'
import { expiredRow } from './expired-row.ts'
import { type Expired, judgeStart, type Standing } from './judge-start.ts'
import { Numbering } from './numbering.ts'
import type { Owner } from './owner.ts'
import type { BlockRecord, DeadLetter } from './ports.ts'
import type { RecordKind } from './record-kinds.ts'

/** What all partitions of one topic share. */
export interface MeterOptions extends WriterOptions {
  readonly kind: RecordKind
  readonly blockMax: BlockSize
}

/** A partition as it was assigned. */
export interface MeteredPartition {
  readonly topic: string
  readonly partition: number
  facts(): Promise<Omit<Standing, 'lastInserted'>>
  readRange(from: bigint, to: bigint): Promise<readonly BlockRecord[]>
}

export type MeterStart =
  | { readonly kind: 'from'; readonly offset: bigint }
  | { readonly kind: 'stop'; readonly reason: string }

/**
 * Brings one partition's records into ClickHouse, each exactly once, for as long as one assignment lasts. docs/metering.md tells the
 * order of effects and what a crash between any two of them costs.
 */
export class PartitionMeter {
  readonly #options: MeterOptions
  readonly #place: MeteredPartition
  readonly #writer: BlockWriter
  #life: TopicIdPartition
  #numbering = new Numbering(new Map())
  #bad = new BadShare()
  #soughtUpTo: bigint | undefined
  /** The highest offset in ClickHouse. */
  #insertedUpTo = -1
  /** In the metadata of what was committed last: the block that comes next. */
  #declared: Declared | undefined
  /** A block was begun and not finished: how it stands in Kafka and ClickHouse has to be asked. */
  #isInDoubt = false

  constructor(place: MeteredPartition, options: MeterOptions) {
    this.#place = place
    this.#options = options
    this.#writer = new BlockWriter(place.partition, options)
    this.#life = { topic: place.topic, partition: place.partition, topicId: '' }
  }

  /** Finds out where to begin, and first inserts once more what an owner before has declared. */
  async start(owner: Owner): Promise<MeterStart> {
    const { store, log, counters } = this.#options
    const { topic, partition } = this.#place
    const facts = await this.#place.facts()
    this.#life = { topic, partition, topicId: facts.topicId }
    const lastInserted = await this.#writer.patiently(owner, () => store.lastInserted(this.#life))
    const verdict = judgeStart({ ...facts, lastInserted })
    if (verdict.kind === 'stop') return verdict
    const { recover, expired, soughtUpTo, offset } = verdict
    this.#soughtUpTo = soughtUpTo
    this.#insertedUpTo = Number(lastInserted ?? -1n)
    this.#bad = new BadShare()
    this.#declared = recover
    // Among rows from before somebody put the offset back, those of the declared block cannot be told from the others.
    const isAmongOld = recover !== undefined && soughtUpTo !== undefined && recover.to <= soughtUpTo
    const before = isAmongOld ? undefined : recover?.from
    // An insert that is still at work must be over before it is asked what is there.
    if (recover !== undefined) await this.#writer.untilNotInserting(owner, this.#token(recover))
    this.#numbering = new Numbering(await this.#writer.patiently(owner, () => store.numbersBefore(this.#life, before)))
    if (expired !== undefined) await this.#recordExpired(owner, expired)
    if (recover !== undefined) {
      log.info({ partition, ...recover }, 'inserting again what was declared')
      await this.#insertDeclared(owner, await this.#place.readRange(recover.from, recover.to), recover, undefined)
      counters.recoveries += 1
    }
    this.#isInDoubt = false
    return { kind: 'from', offset }
  }

  /** Works records off: all are committed when it resolves. After a rejection the next call looks first how things stand. */
  async work(owner: Owner, records: readonly BlockRecord[]): Promise<void> {
    const rest = this.#isInDoubt ? await this.#afterDoubt(owner, records) : records
    this.#isInDoubt = true
    const { blockMax } = this.#options
    for (let at = 0, end = 0; at < rest.length; at = end) {
      end = endOfBlock(rest, at, blockMax)
      const span = nextBlock(rest, at, blockMax)
      if (span !== undefined)
        await this.#insertDeclared(owner, rest.slice(at, end), span, nextBlock(rest, end, blockMax))
    }
    this.#isInDoubt = false
  }

  async #afterDoubt(owner: Owner, records: readonly BlockRecord[]): Promise<readonly BlockRecord[]> {
    const known = this.#insertedUpTo
    const start = await this.start(owner)
    if (start.kind === 'stop') throw this.#stopped(start.reason)
    // What lies between the last row and here are marks, unless ClickHouse has less than it had.
    if (positionAt(records, 0) > start.offset && this.#insertedUpTo < known) {
      throw this.#stopped(
        `BEHIND: ClickHouse lost rows meanwhile; at its next start it is read from ${start.offset} on`,
      )
    }
    return records.filter(({ position }) => BigInt(position) >= start.offset)
  }

  /** The numbered order of effects. */
  async #insertDeclared(
    owner: Owner,
    records: readonly BlockRecord[],
    span: Declared,
    next: Declared | undefined,
  ): Promise<void> {
    const { crash, kind, log } = this.#options
    const token = this.#token(span)
    const isRecovery = this.#declared?.encoder === span.encoder && this.#declared === span
    let block = this.#build(records, span.encoder, isRecovery, 0)
    // 1. Declare: the offset stays, its metadata says what comes. Mostly it went with the commit before. A crash before it: nothing
    //    was done. After it: the next owner inserts exactly these records, in this way.
    //    Marks alone are nothing that could come twice, and come every second: they need none, unless a number tells how far they go.
    const isNothing = block.rows === 0 && block.letters.length === 0 && block.sides.numbers.length === 0
    if (!isNothing && (this.#declared?.from !== span.from || this.#declared.to !== span.to)) {
      await this.#declare(owner, span)
    }
    crash('declare')
    // 2. Dead letters. A crash after it sends them again, under the same keys; after the commit, a crash between would lose them.
    await this.#writer.letters(owner, block.letters)
    // 3. Rows. A crash within it or after it: the next owner repeats the insert, and ClickHouse drops what it has.
    let refusal = await this.#writer.months(owner, kind.table, token, block)
    if (refusal !== undefined && span.encoder === 'fast') {
      log.warn({ err: refusal, partition: this.#place.partition, token }, 'block refused, reading each of its records')
      this.#numbering.undo()
      const { letters: sent } = block
      block = this.#build(records, 'slow', isRecovery, sent.length)
      await this.#declare(owner, { ...span, encoder: 'slow' })
      crash('redeclare')
      const isNew = ({ message }: DeadLetter) => !sent.some((one) => one.message.position === message.position)
      await this.#writer.letters(owner, block.letters.filter(isNew))
      refusal = await this.#writer.months(owner, kind.table, token, block)
    }
    if (refusal !== undefined) throw this.#stopped(`ROWS_REFUSED: ${refusal.message.slice(0, 300)}`)
    if (block.rows > 0) {
      const timestampMs = records.at(-1)?.timestampMs ?? 0
      const months = block.months.map(({ lines }) => lines)
      const retried = { ...this.#life, table: kind.table, dedupToken: token, months, timestampMs }
      await this.#writer.repair(owner, retried, isRecovery)
    }
    // 4. Numbers, marks and gaps. After the rows, for a mark says that they are there. A crash after it repeats them, which changes nothing.
    await this.#writer.sides(owner, token, block.sides)
    // 5. Commit, with the declaration of the next block. A crash before it repeats 2 to 4.
    await this.#commit(owner, span.to + 1n, next)
    crash('commit')
    this.#finish(block)
  }

  #build(records: readonly BlockRecord[], encoder: Encoder, isRecovery: boolean, lettersBefore: number): Block {
    const { kind, log } = this.#options
    const { partition, topicId } = this.#life
    const block = buildBlock(records, {
      ...{ kind, encoder, partition, topicId },
      ...{ numbering: this.#numbering, insertedUpTo: this.#insertedUpTo },
    })
    // What was declared was borne when it was declared.
    const found = block.letters.length - lettersBefore
    if (!isRecovery && !this.#bad.take(lettersBefore === 0 ? records.length : found, found)) {
      this.#numbering.undo()
      const share = `${block.letters.length} of ${records.length} records from offset ${records[0]?.position} on`
      throw this.#stopped(`TOO_MANY_BAD: ${share} cannot be read, the first because: ${block.letters[0]?.reason}`)
    }
    for (const lost of block.lost) log.error({ partition, ...lost }, 'numbers that never came')
    return block
  }

  async #declare(owner: Owner, declared: Declared): Promise<void> {
    await owner.commit(String(declared.from), this.#note(declared))
    this.#declared = declared
  }

  async #commit(owner: Owner, offset: bigint, next: Declared | undefined): Promise<void> {
    if (this.#soughtUpTo !== undefined && offset > this.#soughtUpTo) this.#soughtUpTo = undefined
    await owner.commit(String(offset), this.#note(next))
    this.#declared = next
  }

  #finish(block: Block): void {
    const { counters } = this.#options
    this.#numbering.keep()
    this.#insertedUpTo = block.insertedUpTo
    counters.rows += block.rows
    counters.batches += 1
    counters.duplicates += block.duplicates
    for (const { count } of block.lost) counters.lost += count
  }

  /** Offsets that Kafka deleted before they were read: written down before anything behind them is committed. */
  async #recordExpired(owner: Owner, expired: Expired): Promise<void> {
    const row = expiredRow(this.#life, expired)
    this.#options.log.error(
      { partition: this.#place.partition, ...expired },
      'Kafka deleted records before they were read',
    )
    const token = `${this.#life.topicId}:${this.#place.partition}:expired-${expired.to}`
    await this.#writer.sides(owner, token, { numbers: [], marks: [], gaps: [row] })
    this.#options.counters.expired += Number(expired.to - expired.from) + 1
  }

  #note(declared: Declared | undefined): string {
    return writeNote({ topicId: this.#life.topicId, declared, soughtUpTo: this.#soughtUpTo })
  }

  /** Names the block in every life of the topic. */
  #token({ from, to }: Declared): string {
    return `${this.#life.topicId}:${this.#place.partition}:${from}-${to}`
  }

  #stopped(reason: string): WeirError {
    return new WeirError('PARTITION_STOPPED', reason)
  }
}
