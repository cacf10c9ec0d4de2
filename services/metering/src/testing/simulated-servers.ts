import { encodeDecisionOpen } from '@weir/contracts/decision.v1.ts'
import { decisionInput } from '@weir/contracts/testing/decision-input.ts'
import { WeirError } from '@weir/core/errors.ts'
import type { AssignedPartition, OffsetCommit, RecordBatch } from '@weir/kafka/consume-batches.ts'
import { createLogger } from '@weir/runtime/logger.ts'
import { Meter } from '../meter.ts'
import { newCounters } from '../metrics.ts'
import type { ShardInsert, UsageStore } from '../ports.ts'
import { decisions } from '../record-kinds.ts'
import { WatermarkWriter } from '../watermark-writer.ts'

export const topicId = '11111111-2222-3333-4444-555555555555'
const journal = '00000000-0000-4000-8000-000000000001'
const log = createLogger('test', 'silent')
const [lastMonthMs, thisMonthMs] = [Date.parse('2026-10-31T12:00:00Z'), Date.parse('2026-11-01T12:00:00Z')]

const decision = (seq: number, tsMs: number) =>
  `${encodeDecisionOpen(decisionInput({ id: journal, tsMs, subject: 's', route: 'GET /' }))},"journal":"${journal}","seq":${seq}}`

/** The end of a process: nothing that it does has an effect any more. */
export class Killed extends Error {}

/** Kafka with a log of six partitions, and ClickHouse with its tokens. */
export class World {
  readonly logs: string[][]
  readonly committed = new Map<number, { readonly offset: bigint; readonly metadata: string }>()
  readonly first = new Map<number, bigint>()
  readonly rows = new Map<string, number>()
  readonly tokens = new Map<string, string>()
  /** Tokens that came again with other rows. */
  readonly changed: string[] = []
  /** The same as `rows`, behind the shard's name. */
  readonly positions = new Set<string>()
  readonly letters = new Set<string>()
  readonly effects: string[] = []
  /** Asked with each effect and its number from 1 on, before it has happened. */
  onEffect: (effect: string, at: number) => void = () => undefined
  refuses: (request: ShardInsert) => boolean = () => false
  refusesLettersOf: number | undefined
  isForgetful = false
  /** Every partition was given to another process. */
  isFenced = false
  /** Tokens of blocks of which ClickHouse was asked whether every table has them once. */
  readonly repaired: string[] = []
  nowMs = thisMonthMs
  /** The shards of a cluster, each with tokens of its own; undefined: one server. */
  shards: number | undefined
  /** Of every block that was inserted, by the shard's name. */
  readonly inserted: { readonly shard: string | undefined; readonly partitions: readonly number[] }[] = []

  constructor(logs: string[][]) {
    this.logs = logs
  }

  effect(name: string): void {
    this.effects.push(name)
    this.onEffect(name, this.effects.length)
  }

  commit(commits: readonly OffsetCommit[]): void {
    for (const { partition, offset, metadata = '' } of commits) {
      this.committed.set(partition, { offset: BigInt(offset), metadata })
    }
  }

  insert(request: ShardInsert): Error | undefined {
    const { table, lines, dedupToken, shard } = request
    if (table !== 'decisions') return undefined
    if (this.refuses(request)) return new Error('refused')
    this.inserted.push({
      shard,
      partitions: [...new Set(positionsOf(lines.toString()).map(({ partition }) => partition))],
    })
    const token = `${shard} ${dedupToken}`
    const known = this.tokens.get(token)
    if (known !== undefined && known !== lines.toString()) this.changed.push(token)
    if (known !== undefined && !this.isForgetful) return undefined
    this.tokens.set(token, lines.toString())
    for (const line of lines.toString().split('\n').filter(Boolean)) {
      const { partition, offset } = JSON.parse(line)
      this.rows.set(`${partition}:${offset}`, (this.rows.get(`${partition}:${offset}`) ?? 0) + 1)
      this.positions.add(`${shard} ${partition}:${offset}`)
    }
    return undefined
  }

  rowsOf(partition: number) {
    return [...this.rows.keys()]
      .filter((key) => key.startsWith(`${partition}:`))
      .map((key) => Number(key.split(':')[1]))
  }
}

const positionsOf = (lines: string) =>
  lines
    .split('\n')
    .filter(Boolean)
    .map((line) => JSON.parse(line))

/** A record as the consumer hands it over. */
function recordOf(text: string, position: number) {
  const bytes = Buffer.from(text)
  const value = { value: bytes, bytes, valueStart: 0, valueEnd: bytes.length }
  return { ...value, position, offset: String(position), key: null, headers: {}, timestampMs: 0 }
}

/** ClickHouse as one process uses it. */
function storeOf(world: World): UsageStore {
  const { shards: count } = world
  return {
    shards: count === undefined ? undefined : { count, nameFor: async (partition) => `shard ${partition % count}` },
    insert: async (request) => {
      world.effect(`insert into ${request.table}`)
      return world.insert(request)
    },
    isInsertRunning: async () => false,
    // All records are of one journal that numbers each partition by offset.
    numbersBefore: async ({ partition }, before) => {
      const known = world.rowsOf(partition).filter((offset) => before === undefined || BigInt(offset) < before)
      return new Map(known.length === 0 ? [] : [[journal, Math.max(...known)]])
    },
    hasRows: async ({ months, shard }) =>
      months.some((lines) =>
        positionsOf(lines.toString()).some(({ partition, offset }) =>
          world.positions.has(`${shard} ${partition}:${offset}`),
        ),
      ),
    repair: async ({ dedupToken }) => {
      world.repaired.push(dedupToken)
      return undefined
    },
    lastInserted: async ({ partition }) => {
      const rows = world.rowsOf(partition)
      return rows.length === 0 ? undefined : BigInt(Math.max(...rows))
    },
  }
}

/** One process's Meter of all partitions, until it is killed. */
export function startMeter(world: World) {
  const store = storeOf(world)
  const crash = () => undefined
  const meter = new Meter({
    kind: decisions,
    store,
    log,
    crash,
    counters: newCounters(),
    clock: { nowMs: () => world.nowMs },
    watermarks: new WatermarkWriter({ store: { insert: async () => undefined }, log, crash }),
    deadLetters: {
      send: async (partition, letters) => {
        world.effect(`send letters of ${partition}`)
        if (partition === world.refusesLettersOf) throw new WeirError('KAFKA_REFUSED', 'too large')
        for (const { message } of letters) world.letters.add(`${partition}:${message.position}`)
      },
    },
    blockMax: { records: 100, bytes: 1_000_000 },
    blocksAtOnce: 3,
    heartbeatIntervalMs: 1_000,
    pause: (ms) => (ms < 1_000 ? new Promise((resolve) => setImmediate(resolve)) : new Promise(() => undefined)),
  })
  const ownership = {
    heartbeat: async () => undefined,
    commitAll: async (commits: readonly OffsetCommit[]) => {
      const [one] = commits
      world.effect(
        `${one?.metadata?.includes('"block"') === true ? 'declare' : 'commit'} ${commits.map((of) => of.partition)}`,
      )
      world.commit(commits)
    },
    isFenced: () => world.isFenced,
  }
  const positions = new Map<number, bigint>()
  return {
    meter,
    async assign(partition: number) {
      const assigned: AssignedPartition = {
        topic: decisions.topic,
        partition,
        ...ownership,
        facts: async (of) => ({
          committed: world.committed.get(of),
          first: world.first.get(of) ?? 0n,
          end: BigInt(world.logs[of]?.length ?? 0),
          topicId,
        }),
        committed: async (of) =>
          new Map(of.flatMap((one) => (world.committed.has(one) ? [[one, world.committed.get(one) ?? never()]] : []))),
        readRange: async (of, from, to) =>
          (world.logs[of] ?? []).flatMap((text, offset) =>
            offset < from || offset > to
              ? []
              : [{ offset: BigInt(offset), key: null, value: Buffer.from(text), headers: {}, timestampMs: 0 }],
          ),
      }
      const start = await meter.onAssigned(assigned)
      if (start.kind === 'from') positions.set(partition, start.offset)
      return start
    },
    /** A round of what is in the logs behind each position. Returns the faults by partition. */
    async round(size = Number.POSITIVE_INFINITY) {
      const batches = [...positions].flatMap(([partition, from]): RecordBatch[] => {
        const values = (world.logs[partition] ?? []).slice(Number(from), Number(from) + size)
        const records = values.map((text, at) => recordOf(text, Number(from) + at))
        if (records.length === 0) return []
        const commit = async () => undefined
        return [{ topic: decisions.topic, partition, records, isOfSeveralBrokers: false, commit, ...ownership }]
      })
      const faults = await meter.onRound(batches)
      for (const { partition, records } of batches) {
        const fault = faults.get(batches.find((batch) => batch.partition === partition) ?? never())
        if (fault === undefined) positions.set(partition, BigInt((records.at(-1)?.position ?? 0) + 1))
        else if (fault instanceof WeirError && fault.code === 'PARTITION_STOPPED') positions.delete(partition)
      }
      return new Map(batches.map((batch) => [batch.partition, faults.get(batch)]))
    },
  }
}

function never(): never {
  throw new Error('not here')
}

/** Records of two months in six partitions, with an unreadable one in some. */
export const sixLogs = () =>
  Array.from({ length: 6 }, (_, partition) =>
    Array.from({ length: 8 }, (_, seq) =>
      partition % 3 === 1 && seq === 3 ? 'bad' : decision(seq, seq < 2 ? lastMonthMs : thisMonthMs),
    ),
  )

export const all = [0, 1, 2, 3, 4, 5]

/** Two rounds of a process whose effects may be cut off. */
export async function play(world: World): Promise<void> {
  const one = startMeter(world)
  await Promise.all(all.map((partition) => one.assign(partition)))
  await one.round(5)
  await one.round()
}

/** What a world has once a further process has done all: each readable record once, each bad one kept. */
export async function settle(world: World): Promise<void> {
  const heir = startMeter(world)
  await Promise.all(all.map((partition) => heir.assign(partition)))
  for (let rounds = 0; rounds < 4; rounds += 1) await heir.round()
}

/** Lets everything run that waits for nothing but the event loop. */
export async function idle(): Promise<void> {
  for (let turns = 0; turns < 200; turns += 1) await new Promise((resolve) => setImmediate(resolve))
}
