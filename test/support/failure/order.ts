import { connectClickhouse } from '@weir/clickhouse/connect.ts'
import { type LedgerEntry, packId } from './ledger.ts'
import type { Stack } from './stack.ts'

/**
 * Connections whose decisions stand in Kafka in another order than that in which they were answered, or in several
 * partitions. Each connection asks for one subject, one request after another. For one ingress process that lived all
 * the while; sums are left out.
 */
export async function disorderedSubjects(stack: Stack, ledger: readonly LedgerEntry[]): Promise<string[]> {
  const connectionOf = new Map(ledger.map(({ id, connection }) => [id, connection]))
  const client = connectClickhouse(stack.addresses.clickhouse, 'failure-suite', 60_000)
  const query = `SELECT id, subject, partition FROM weir.decisions WHERE count = 1 AND subject LIKE 'wide-%' ORDER BY partition, offset`
  const text = await (await client.query({ query, format: 'TabSeparated' })).text()
  await client.close()
  const stored = new Map<string, { ids: string[]; partitions: Set<string> }>()
  for (const line of text.split('\n')) {
    const [uuid = '', subject = '', partition = ''] = line.split('\t')
    const id = packId(uuid)
    if (!connectionOf.has(id)) continue
    const one = stored.get(subject) ?? { ids: [], partitions: new Set() }
    one.ids.push(id)
    one.partitions.add(partition)
    stored.set(subject, one)
  }
  const answered = Map.groupBy(ledger, ({ connection }) => connection)
  return [...stored].flatMap(([subject, { ids, partitions }]) => {
    const own = answered.get(connectionOf.get(ids[0] ?? '') ?? -1)?.map(({ id }) => id)
    const isSame = own !== undefined && own.length === ids.length && own.every((id, index) => id === ids[index])
    return isSame && partitions.size === 1 ? [] : [subject]
  })
}
