import { isServerAway } from '@weir/clickhouse/first-that-answers.ts'
import type { UsageStore } from './ports.ts'

/** One replica of a shard. */
export interface Replica {
  readonly store: UsageStore
  /** The server's own name of its shard. */
  readonly shardName: () => Promise<string>
}

/** A shard: a store whose name is known once one of its replicas has answered. */
export interface Shard extends Omit<UsageStore, 'shards'> {
  readonly known: string | undefined
  name(): Promise<string>
}

/**
 * A shard of several replicas. Every call goes to one replica as a whole, so that what it reads is of the replica that
 * it brought up to date: to the same one until that does not answer, then to the next. A call that got no answer is for
 * the caller to repeat. A server of another shard among them is refused by name.
 */
export function shardOfReplicas(replicas: readonly Replica[]): Shard {
  let at = 0
  let known: string | undefined
  const isOfShard = new Set<Replica>()
  const verify = async (replica: Replica) => {
    if (isOfShard.has(replica)) return
    const name = await replica.shardName()
    known ??= name
    if (name !== known)
      throw new Error(`WEIR_CLICKHOUSE_URL lists a server of shard ${name} among those of shard ${known}`)
    isOfShard.add(replica)
  }
  const on = async <T>(work: (store: UsageStore) => Promise<T>): Promise<T> => {
    const used = at
    const replica = replicas[used]
    if (replica === undefined) throw new Error('a shard has a replica')
    try {
      await verify(replica)
      return await work(replica.store)
    } catch (error) {
      if (isServerAway(error) && used === at) at = (at + 1) % replicas.length
      throw error
    }
  }
  const name = async (): Promise<string> => known ?? on(async () => known ?? '')
  return {
    get known() {
      return known
    },
    name,
    insert: (request, signal) => on((store) => store.insert(request, signal)),
    isInsertRunning: (dedupToken) => on((store) => store.isInsertRunning(dedupToken)),
    numbersBefore: (partition, offset) => on((store) => store.numbersBefore(partition, offset)),
    hasRows: (block) => on((store) => store.hasRows(block)),
    repair: (block, options) => on((store) => store.repair(block, options)),
    lastInserted: (partition) => on((store) => store.lastInserted(partition)),
  }
}

/**
 * All shards of a cluster. A partition's next block is inserted on the shard of its number modulo their count; a block
 * that was declared, on the shard that it was declared for. What is there of a partition is asked of every shard, for
 * there may have been fewer when it was inserted.
 */
export function storeOfShards(shards: readonly Shard[]): UsageStore {
  const shardFor = (partition: number): Shard => {
    const shard = shards[partition % shards.length]
    if (shard === undefined) throw new Error('a cluster has a shard')
    return shard
  }
  const named = async (wanted: string | undefined, partition = 0): Promise<Shard> => {
    if (wanted === undefined) return shardFor(partition)
    const byName = () => shards.find(({ known }) => known === wanted)
    const found = byName()
    if (found !== undefined) return found
    const names = await Promise.allSettled(shards.map((shard) => shard.name()))
    const asked = byName()
    if (asked !== undefined) return asked
    const silent = names.find((one) => one.status === 'rejected')
    if (silent !== undefined) throw silent.reason
    throw new Error(`no address of WEIR_CLICKHOUSE_URL belongs to shard ${wanted}, for which a block was declared`)
  }
  return {
    shards: { count: shards.length, nameFor: (partition) => shardFor(partition).name() },
    insert: async (request, signal) => (await named(request.shard)).insert(request, signal),
    isInsertRunning: async (dedupToken, shard) => (await named(shard)).isInsertRunning(dedupToken),
    hasRows: async (block) => (await named(block.shard)).hasRows(block),
    repair: async (block, options) => (await named(block.shard)).repair(block, options),
    async numbersBefore(partition, offset) {
      const highest = new Map<string, number>()
      for (const numbers of await Promise.all(shards.map((shard) => shard.numbersBefore(partition, offset)))) {
        for (const [journal, seq] of numbers) highest.set(journal, Math.max(seq, highest.get(journal) ?? seq))
      }
      return highest
    },
    async lastInserted(partition) {
      const all = await Promise.all(shards.map((shard) => shard.lastInserted(partition)))
      return all.reduce((last, one) => (one !== undefined && one > (last ?? -1n) ? one : last), undefined)
    },
  }
}
