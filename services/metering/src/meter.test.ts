import { encodeCommitMetadata, parseCommitMetadata } from '@weir/contracts/commit-metadata.v2.ts'
import { WeirError } from '@weir/core/errors.ts'
import type { OffsetCommit } from '@weir/kafka/consume-batches.ts'
import { describe, expect, test } from 'vitest'
import type { ShardInsert } from './ports.ts'
import { all, idle, Killed, play, settle, sixLogs, startMeter, topicId, World } from './testing/simulated-servers.ts'

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
    'declare 0',
    'insert into decisions',
    'insert into decisions',
    'send letters of 1',
    'send letters of 4',
    'insert into numbers',
    'insert into gaps',
    'commit 1,2,3,4,5',
    'commit 0',
  ])
  expectOnce(world)
})

test('On one server nothing that is committed names a shard, and ClickHouse gives rows their time', async () => {
  const world = new World(sixLogs())
  const committed: string[] = []
  world.onEffect = () => committed.push(...[...world.committed.values()].map(({ metadata }) => metadata))
  await play(world)
  expect(committed.filter((metadata) => metadata.includes('"block"'))).not.toEqual([])
  expect(committed.filter((metadata) => metadata.includes('shard'))).toEqual([])
  expect([...world.tokens.values()].filter((lines) => lines.includes('received_at'))).toEqual([])
})

test('A partition that goes to another process while its block is declared gets no row from this one', async () => {
  const world = new World(sixLogs())
  const one = startMeter(world)
  await Promise.all(all.map((partition) => one.assign(partition)))
  world.onEffect = (effect) => {
    world.isFenced = effect.startsWith('declare')
  }
  const faults = await one.round()
  expect([...faults.values()]).toEqual(all.map(() => expect.objectContaining({ code: 'PARTITION_LOST' })))
  expect(world.rows.size).toBe(0)
  world.isFenced = false
  world.onEffect = () => undefined
  await settle(world)
  expectOnce(world)
})

test('Only a block whose insert got no answer is compared with every table', async () => {
  const world = new World(sixLogs())
  const { insert } = world
  let lost = 0
  world.insert = (request) => {
    const refusal = insert.call(world, request)
    if (request.table === 'decisions' && lost++ === 0) throw new WeirError('CLICKHOUSE_UNAVAILABLE', 'no answer')
    return refusal
  }
  const one = startMeter(world)
  await Promise.all(all.map((partition) => one.assign(partition)))
  await one.round(5)
  expect(world.repaired).toHaveLength(1)
  await one.round()
  expect(world.repaired).toHaveLength(1)
  expectOnce(world)
})

/** Once for each step, whose effect has happened or not; `restart` is called before the next start. */
async function killAtEachStep(open: () => World, restart: (world: World) => void = () => undefined): Promise<void> {
  const whole = open()
  await play(whole)
  expectOnce(whole)
  for (let last = 1; last <= whole.effects.length; last += 1) {
    for (const isApplied of [false, true]) {
      const world = open()
      // The effect after the last one still happens, and its answer is lost; or it does not happen.
      world.onEffect = (_, at) => {
        if (at > last) throw new Killed()
      }
      const { commit, insert } = world
      if (isApplied) Object.assign(world, applyLast(world, last, commit, insert))
      await Promise.race([play(world).catch(() => undefined), idle()])
      world.onEffect = () => undefined
      world.effects.length = 0
      Object.assign(world, { commit, insert })
      restart(world)
      await settle(world)
      expectOnce(world)
      expect(world.changed).toEqual([])
    }
  }
}

test('Whatever step a process is killed at, each record is a row once, and each unreadable one is kept', () =>
  killAtEachStep(() => new World(sixLogs())))

/** Replaces the effects by ones whose answer is lost from the last one on. */
function applyLast(world: World, last: number, commit: World['commit'], insert: World['insert']) {
  const isLast = () => world.effects.length === last
  return {
    commit: (commits: readonly OffsetCommit[]) => {
      commit.call(world, isLast() ? commits.slice(0, Math.ceil(commits.length / 2)) : commits)
      if (isLast()) throw new Killed()
    },
    insert: (request: ShardInsert) => {
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
  let refused = 0
  world.commit = (commits) => {
    if (commits.some(({ metadata = '' }) => metadata.length > 100)) {
      refused += 1
      const cause = Object.assign(new Error('too large'), { type: 'OFFSET_METADATA_TOO_LARGE' })
      throw new WeirError('KAFKA_REFUSED', 'too large', cause)
    }
    commit.call(world, commits)
  }
  const one = startMeter(world)
  await Promise.all(all.map((partition) => one.assign(partition)))
  for (let rounds = 0; rounds < 5; rounds += 1) await one.round()
  expectOnce(world)
  expect(refused).toBeGreaterThan(0)
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

describe('In a cluster', () => {
  test('partitions of different shards share no block, and each declaration names its shard', async () => {
    const world = new World(sixLogs())
    world.shards = 2
    const one = startMeter(world)
    await Promise.all(all.map((partition) => one.assign(partition)))
    const declared = new Map<number, string | undefined>()
    world.onEffect = (effect) => {
      if (effect !== 'insert into decisions') return
      for (const [partition, { metadata }] of world.committed) {
        const { intent } = parseCommitMetadata(metadata, partition)
        if (intent !== undefined) declared.set(partition, intent.shard)
      }
    }
    await one.round()
    expectOnce(world)
    expect([...declared].toSorted()).toEqual([
      [0, 'shard 0'],
      [1, 'shard 1'],
    ])
    expect([...new Set(world.inserted.map(({ shard, partitions }) => `${shard}: ${partitions}`))].toSorted()).toEqual([
      'shard 0: 0,2,4',
      'shard 1: 1,3,5',
    ])
  })

  test.each([1, 2, 3])(
    'whatever step a process is killed at, each record is a row once, on %i shards since',
    async (since) => {
      const open = () => Object.assign(new World(sixLogs()), { shards: 2 })
      await killAtEachStep(open, (world) => {
        world.shards = since
        world.nowMs += 5_000
      })
    },
  )
})
