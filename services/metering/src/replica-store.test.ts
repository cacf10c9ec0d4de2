import { expect, test } from 'vitest'
import type { UsageStore } from './ports.ts'
import { type Replica, shardOfReplicas, storeOfShards } from './replica-store.ts'

const refused = Object.assign(new Error('connect ECONNREFUSED'), { code: 'ECONNREFUSED' })
const place = { topic: 't', topicId: 'i', partition: 3 }
const rows = { table: 'decisions', lines: Buffer.from(''), dedupToken: 'block' }
const { signal } = new AbortController()

/** A replica, and what it was asked; while `fault` is set it answers nothing else. */
class FakeReplica implements Replica {
  readonly asked: string[] = []
  readonly store: UsageStore
  fault: Error | undefined
  #shard: string

  constructor(shard: string, { numbers = {}, last }: { numbers?: Record<string, number>; last?: bigint } = {}) {
    this.#shard = shard
    const answer = async <T>(name: string, value: T): Promise<T> => {
      this.asked.push(name)
      if (this.fault !== undefined) throw this.fault
      return value
    }
    this.store = {
      insert: () => answer('insert', undefined),
      isInsertRunning: () => answer('isInsertRunning', false),
      numbersBefore: () => answer('numbersBefore', new Map(Object.entries(numbers))),
      hasRows: () => answer('hasRows', true),
      repair: () => answer('repair', undefined),
      lastInserted: () => answer('lastInserted', last),
    }
  }

  readonly shardName = async (): Promise<string> => {
    if (this.fault !== undefined) throw this.fault
    return this.#shard
  }
}

test('A replica that does not answer is left for the next one, which is kept', async () => {
  const [one, other] = [new FakeReplica('a'), new FakeReplica('a')]
  const shard = shardOfReplicas([one, other])
  await shard.insert(rows, signal)
  one.fault = refused
  await expect(shard.insert(rows, signal)).rejects.toBe(refused)
  await shard.insert(rows, signal)
  one.fault = undefined
  await shard.hasRows({ ...place, ...rows, months: [] })
  expect([one.asked, other.asked]).toEqual([
    ['insert', 'insert'],
    ['insert', 'hasRows'],
  ])
})

test('A replica that refuses a statement is asked again', async () => {
  const [one, other] = [new FakeReplica('a'), new FakeReplica('a')]
  const shard = shardOfReplicas([one, other])
  await shard.name()
  one.fault = new Error('quorum was not reached')
  await expect(shard.insert(rows, signal)).rejects.toBe(one.fault)
  one.fault = undefined
  await shard.insert(rows, signal)
  expect([one.asked, other.asked]).toEqual([['insert', 'insert'], []])
})

test('A server of another shard among the replicas is refused, and gets no row', async () => {
  const [one, other] = [new FakeReplica('a'), new FakeReplica('b')]
  const shard = shardOfReplicas([one, other])
  expect(await shard.name()).toBe('a')
  one.fault = refused
  await shard.insert(rows, signal).catch(() => undefined)
  await expect(shard.insert(rows, signal)).rejects.toThrow('a server of shard b among those of shard a')
  expect(other.asked).toEqual([])
})

test('A declared block goes to the shard that it was declared for, a new one to that of its partition', async () => {
  const replicas = ['a', 'b', 'c'].map((name) => new FakeReplica(name))
  const store = storeOfShards(replicas.map((replica) => shardOfReplicas([replica])))
  expect([store.shards?.count, await store.shards?.nameFor(3), await store.shards?.nameFor(4)]).toEqual([3, 'a', 'b'])
  await store.insert({ ...rows, shard: 'c' }, signal)
  expect(replicas.map(({ asked }) => asked)).toEqual([[], [], ['insert']])
  await expect(store.insert({ ...rows, shard: 'gone' }, signal)).rejects.toThrow('belongs to shard gone')
})

test('While a shard does not answer, a block of a shard that may be that one waits, and others go on', async () => {
  const [one, other] = [new FakeReplica('a'), new FakeReplica('b')]
  other.fault = refused
  const store = storeOfShards([one, other].map((replica) => shardOfReplicas([replica])))
  await store.insert({ ...rows, shard: 'a' }, signal)
  await expect(store.insert({ ...rows, shard: 'b' }, signal)).rejects.toBe(refused)
  expect(one.asked).toEqual(['insert'])
})

test('What is there of a partition is the most that any shard has', async () => {
  const replicas = [
    new FakeReplica('a', { numbers: { j: 7, k: 1 }, last: 90n }),
    new FakeReplica('b', { numbers: { j: 3, l: 0 }, last: 120n }),
    new FakeReplica('c'),
  ]
  const store = storeOfShards(replicas.map((replica) => shardOfReplicas([replica])))
  expect(await store.lastInserted(place)).toBe(120n)
  expect(await store.numbersBefore(place, undefined)).toEqual(new Map(Object.entries({ j: 7, k: 1, l: 0 })))
  expect(await storeOfShards([shardOfReplicas([new FakeReplica('a')])]).lastInserted(place)).toBeUndefined()
})
