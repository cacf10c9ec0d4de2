import { waitUntil } from '@weir/runtime/wait-until.ts'
import type { ClusterSetup } from '../servers/redis-cluster.ts'

/**
 * Kills the master that holds the slot. Waits until another node holds it, and until the killed one, started again,
 * follows that.
 */
export async function failOver(cluster: ClusterSetup, slot: number): Promise<void> {
  const killed = await cluster.holderOf(slot)
  await killed.kill()
  const isReplaced = async () => (await cluster.holderOf(slot)).id !== killed.id
  if ((await waitUntil(isReplaced, { deadlineMs: 20_000 })) !== true) throw new Error('no replica took over')
  await killed.restart()
  const follows = async () => (await killed.redis.info('replication').catch(() => '')).includes('master_link_status:up')
  if ((await waitUntil(follows, { deadlineMs: 20_000 })) !== true) throw new Error('the killed master does not follow')
}
