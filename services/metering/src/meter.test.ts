import type { InsertRequest } from '@weir/clickhouse/insert.ts'
import { encodeCommitMetadata, parseCommitMetadata } from '@weir/contracts/commit-metadata.v2.ts'
import { encodeDecisionOpen } from '@weir/contracts/decision.v1.ts'
import { WeirError } from '@weir/core/errors.ts'
import type { AssignedPartition, OffsetCommit, RecordBatch } from '@weir/kafka/consume-batches.ts'
import { createLogger } from '@weir/runtime/logger.ts'
import { describe, expect, test } from 'vitest'
import { Meter } from './meter.ts'
import { newCounters } from './metrics.ts'
import type { UsageStore } from './ports.ts'
import { decisions } from './record-kinds.ts'
import { WatermarkWriter } from './watermark-writer.ts'

const topicId = '11111111-2222-3333-4444-555555555555'
const journal = '00000000-0000-4000-8000-000000000001'
const log = createLogger('test', 'silent')
const [lastMonthMs, thisMonthMs] = [Date.parse('2026-10-31T12:00:00Z'), Date.parse('2026-11-01T12:00:00Z')]

const decision = (seq: number, tsMs: number) =>
  `${encodeDecisionOpen({
    ...{ id: journal, tsMs, subject: 's', keyId: '', plan: '', route: 'GET /', method: 'GET' },
    ...{ cost: 1, count: 1, outcome: 'allow', reason: 'ok', mode: 'enforce', charged: 'yes', deniedBy: '', limits: [] },
  })},"journal":"${journal}","seq":${seq}}`

/** The end of a process: nothing that it does has an effect any more. */
class Killed extends Error {}

/** Kafka with a log of six partitions, and ClickHouse with its tokens. */
class World {
  readonly logs: string[][]
  readonly committed = new Map<number, { readonly offset: bigint; readonly metadata: string }>()
  readonly first = new Map<number, bigint>()
  readonly rows = new Map<string, number>()
  readonly tokens = new Set<string>()
  readonly letters = new Set<string>()
  readonly effects: string[] = []
  /** Asked with each effect and its number from 1 on, before it has happened. */
  onEffect: (effect: string, at: number) => void = () => undefined
  refuses: (request: InsertRequest) => boolean = () => false
  refusesLettersOf: number | undefined
  isForgetful = false
  nowMs = thisMonthMs

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

  insert(request: InsertRequest): Error | undefined {
    const { table, lines, dedupToken } = request
    if (table !== 'decisions') return undefined
    if (this.refuses(request)) return new Error('refused')
    if (this.tokens.has(dedupToken) && !this.isForgetful) return undefined
    this.tokens.add(dedupToken)
    for (const line of lines.toString().split('\n').filter(Boolean)) {
      const { partition, offset } = JSON.parse(line)
      this.rows.set(`${partition}:${offset}`, (this.rows.get(`${partition}:${offset}`) ?? 0) + 1)
    }
    return undefined
  }

  rowsOf(partition: number) {
    return [...this.rows.keys()]
      .filter((key) => key.startsWith(`${partition}:`))
      .map((key) => Number(key.split(':')[1]))
  }
}

const placesOf = (lines: string) =>
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
  return {
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
    hasRows: async ({ months }) =>
      months.some((lines) =>
        placesOf(lines.toString()).some(({ partition, offset }) => world.rows.has(`${partition}:${offset}`)),
      ),
    repair: async () => undefined,
    lastInserted: async ({ partition }) => {
      const rows = world.rowsOf(partition)
      return rows.length === 0 ? undefined : BigInt(Math.max(...rows))
    },
  }
}

/** One process's Meter of all partitions, until it is killed. */
function startMeter(world: World) {
  const store = storeOf(world)
  const crash = () => undefined
  const meter = new Meter({
    ...{ kind: decisions, store, log, crash, counters: newCounters(), clock: { nowMs: () => world.nowMs } },
    watermarks: new WatermarkWriter({ store: { insert: async () => undefined }, log, crash }),
    deadLetters: {
      send: async (partition, letters) => {
        world.effect(`send letters of ${partition}`)
        if (partition === world.refusesLettersOf) throw new WeirError('KAFKA_REFUSED', 'too large')
        for (const { message } of letters) world.letters.add(`${partition}:${message.position}`)
      },
    },
    ...{ blockMax: { records: 100, bytes: 1_000_000 }, blocksAtOnce: 3, heartbeatIntervalMs: 1_000 },
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
    isFenced: () => false,
  }
  const positions = new Map<number, bigint>()
  return {
    meter,
    async assign(partition: number) {
      const assigned: AssignedPartition = {
        ...{ topic: decisions.topic, partition, ...ownership },
        facts: async (of) => ({
          committed: world.committed.get(of),
          ...{ first: world.first.get(of) ?? 0n, end: BigInt(world.logs[of]?.length ?? 0), topicId },
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
const sixLogs = () =>
  Array.from({ length: 6 }, (_, partition) =>
    Array.from({ length: 8 }, (_, seq) =>
      partition % 3 === 1 && seq === 3 ? 'bad' : decision(seq, seq < 2 ? lastMonthMs : thisMonthMs),
    ),
  )

const all = [0, 1, 2, 3, 4, 5]

/** Two rounds of a process whose effects may be cut off. */
async function play(world: World): Promise<void> {
  const one = startMeter(world)
  await Promise.all(all.map((partition) => one.assign(partition)))
  await one.round(5)
  await one.round()
}

/** What a world has once a further process has done all: each readable record once, each bad one kept. */
async function settle(world: World): Promise<void> {
  const heir = startMeter(world)
  await Promise.all(all.map((partition) => heir.assign(partition)))
  for (let rounds = 0; rounds < 4; rounds += 1) await heir.round()
}

function expectOnce(world: World): void {
  const wrong: string[] = []
  for (const [partition, records] of world.logs.entries()) {
    for (const [offset, text] of records.entries()) {
      const times = world.rows.get(`${partition}:${offset}`) ?? 0
      const isKept = world.letters.has(`${partition}:${offset}`)
      if (text === 'bad' ? times !== 0 || !isKept : times !== 1) wrong.push(`${partition}:${offset} ${times} times`)
    }
  }
  expect(wrong).toEqual([])
  expect(all.map((partition) => world.committed.get(partition)?.offset)).toEqual(all.map(() => 8n))
}

test('A round is one block: declared at its first partition, inserted by month, and its first partition is committed last', async () => {
  const world = new World(sixLogs())
  const one = startMeter(world)
  await Promise.all(all.map((partition) => one.assign(partition)))
  world.effects.length = 0
  await one.round()
  expect(world.effects).toEqual([
    ...['declare 0', 'insert into decisions', 'insert into decisions', 'send letters of 1', 'send letters of 4'],
    ...['insert into numbers', 'insert into gaps', 'commit 1,2,3,4,5', 'commit 0'],
  ])
  expectOnce(world)
})

describe('whatever step a process is killed at', () => {
  test('each record is a row once, and each unreadable one is kept', async () => {
    const whole = new World(sixLogs())
    await play(whole)
    expectOnce(whole)
    for (let last = 1; last <= whole.effects.length; last += 1) {
      for (const isApplied of [false, true]) {
        const world = new World(sixLogs())
        // The effect after the last one still happens, and its answer is lost; or it does not happen.
        world.onEffect = (_, at) => {
          if (at > last) throw new Killed()
        }
        const { commit, insert } = world
        if (isApplied) Object.assign(world, applyLast(world, last, commit, insert))
        const dying = play(world)
        await Promise.race([dying.catch(() => undefined), idle()])
        world.onEffect = () => undefined
        world.effects.length = 0
        Object.assign(world, { commit, insert })
        await settle(world)
        expectOnce(world)
      }
    }
  })
})

/** Lets everything run that waits for nothing but the event loop. */
async function idle(): Promise<void> {
  for (let turns = 0; turns < 200; turns += 1) await new Promise((resolve) => setImmediate(resolve))
}

/** Replaces the effects by ones whose answer is lost from the last one on. */
function applyLast(world: World, last: number, commit: World['commit'], insert: World['insert']) {
  const isLast = () => world.effects.length === last
  return {
    commit: (commits: readonly OffsetCommit[]) => {
      commit.call(world, isLast() ? commits.slice(0, Math.ceil(commits.length / 2)) : commits)
      if (isLast()) throw new Killed()
    },
    insert: (request: InsertRequest) => {
      const refusal = insert.call(world, request)
      if (isLast()) throw new Killed()
      return refusal
    },
  }
}

test('A process whose commits get no answer, or half of them are stored, goes on by itself', async () => {
  const whole = new World(sixLogs())
  await play(whole)
  for (let lost = 1; lost <= whole.effects.length; lost += 1) {
    const world = new World(sixLogs())
    const { commit } = world
    world.commit = (commits) => {
      const isLost = world.effects.length === lost
      commit.call(world, isLost ? commits.slice(0, Math.floor(commits.length / 2)) : commits)
      if (isLost) throw new WeirError('KAFKA_UNAVAILABLE', 'no answer')
    }
    const one = startMeter(world)
    const start = (partition: number) => one.assign(partition).catch(() => one.assign(partition))
    await Promise.all(all.map(start))
    for (let rounds = 0; rounds < 4; rounds += 1) await one.round(5)
    expectOnce(world)
  }
})

test.each([0, 1, 4])(
  'Letters of partition %i that Kafka refuses stop it alone, and are sent at its next start',
  async (at) => {
    const world = new World(sixLogs())
    world.logs[0]?.splice(3, 1, 'bad')
    world.refusesLettersOf = at
    const one = startMeter(world)
    await Promise.all(all.map((partition) => one.assign(partition)))
    const faults = await one.round()
    expect([...faults].flatMap(([partition, fault]) => (fault === undefined ? [] : [partition]))).toEqual([at])
    expect(faults.get(at)).toMatchObject({ code: 'PARTITION_STOPPED' })
    expect(world.letters.size).toBe(2)
    world.refusesLettersOf = undefined
    await settle(world)
    expectOnce(world)
  },
)

test('A record that ClickHouse refuses although it was read stops its partition, and no other', async () => {
  const world = new World(sixLogs())
  world.refuses = ({ lines }) => lines.includes('"partition":2,')
  const one = startMeter(world)
  await Promise.all(all.map((partition) => one.assign(partition)))
  const faults = await one.round()
  expect([...faults].flatMap(([partition, fault]) => (fault === undefined ? [] : [partition]))).toEqual([2])
  world.refuses = () => false
  await settle(world)
  expectOnce(world)
})

test('A block of long ago is not sent again if its rows are there: ClickHouse may have forgotten its token', async () => {
  const world = new World(sixLogs())
  world.onEffect = (effect) => {
    if (effect.startsWith('send letters')) throw new Killed()
  }
  await play(world).catch(() => undefined)
  expect(world.rows.size).toBeGreaterThan(0)
  world.nowMs += 600_001
  world.isForgetful = true
  world.onEffect = () => undefined
  await settle(world)
  expectOnce(world)
})

test('A broker that stores less metadata gets blocks of fewer partitions', async () => {
  const world = new World(sixLogs())
  const { commit } = world
  world.commit = (commits) => {
    if (commits.some(({ metadata = '' }) => metadata.length > 130)) {
      const cause = Object.assign(new Error('too large'), { type: 'OFFSET_METADATA_TOO_LARGE' })
      throw new WeirError('KAFKA_REFUSED', 'too large', cause)
    }
    commit.call(world, commits)
  }
  const one = startMeter(world)
  await Promise.all(all.map((partition) => one.assign(partition)))
  for (let rounds = 0; rounds < 5; rounds += 1) await one.round()
  expectOnce(world)
})

describe('A person moves the offset of a partition of a block that is not finished', () => {
  test.each([
    ['the lead', 0, 'insert into decisions'],
    ['the lead', 0, 'send letters of 1'],
    ['a member', 5, 'insert into decisions'],
    ['a member', 5, 'send letters of 1'],
  ] as const)('%s (%i), killed before %s: the others are finished, and it is read from there', async (_, at, step) => {
    const world = new World(sixLogs())
    world.onEffect = (effect) => {
      if (effect === step) throw new Killed()
    }
    await Promise.race([play(world).catch(() => undefined), idle()])
    world.onEffect = () => undefined
    // As weir metering seek does.
    const { intent } = parseCommitMetadata(world.committed.get(at)?.metadata ?? '', at)
    const metadata = encodeCommitMetadata({ topicId, intent, isSought: true, seekOverrideUpTo: undefined })
    world.committed.set(at, { offset: 2n, metadata })
    await settle(world)
    const isInserted = step !== 'insert into decisions'
    for (const offset of isInserted ? [] : [0, 1]) {
      expect(world.rows.has(`${at}:${offset}`)).toBe(false)
      world.rows.set(`${at}:${offset}`, 1)
    }
    expectOnce(world)
  })
})
