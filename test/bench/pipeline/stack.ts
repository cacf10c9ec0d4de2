import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { findClickhouse, kafkaFrom, localKafka } from '@weir/cli/find-servers.ts'
import { connectClickhouse } from '@weir/clickhouse/connect.ts'
import { topics } from '@weir/contracts/topics.ts'
import { createClient } from '@weir/kafka/connect.ts'
import { type RunningWeir, weirUp } from '../../support/weir-up.ts'
import { customer } from './paced-load.ts'

/** Who asks, and whether their requests of a second share records. */
export interface Callers {
  readonly subjects: number
  readonly coalesce: boolean
}

/** Three limits that no run uses up, with thresholds that alerting looks at. Older checkouts know no `coalesce`. */
const policyText = ({ subjects, coalesce }: Callers) => `version: 1
plans: { bench: { limits: [minute, hour, day]${coalesce ? ', coalesce: 1s' : ''} } }
limits:
  minute: { algorithm: fixed_window, size: 1000000000, window: 1m }
  hour: { algorithm: fixed_window, size: 1000000000, window: 1h }
  day: { algorithm: fixed_window, size: 1000000000, period: day, thresholds: [80%, 100%] }
routes: [{ match: "GET /v1/things" }]
upstreams: { demo: { url: "http://127.0.0.1:8070", hosts: ["*"] } }
subjects:
${Array.from({ length: subjects }, (_, at) => `  ${customer(at)}: { plan: bench }`).join('\n')}
`

export type Stack = Awaited<ReturnType<typeof startStack>>

/** Gives the topics of requests' records that many partitions. Returns whether they had fewer. */
async function addPartitions({ line }: RunningWeir, count: number): Promise<boolean> {
  const { kafka: address, kafkaUsername: username, kafkaPassword: password } = line
  const own = localKafka({ address, username: username ?? '', password: password ?? '' })
  const admin = createClient(kafkaFrom(own, 'bench')).admin()
  await admin.connect()
  try {
    const names = [topics.decisions, topics.outcomes]
    const found = (await admin.fetchTopicMetadata({ topics: names })).topics.map((one) => one.partitions.length)
    if (found.every((partitions) => partitions === count)) return false
    await admin.createPartitions({ topicPartitions: names.map((topic) => ({ topic, count })) })
    return true
  } finally {
    await admin.disconnect()
  }
}

/**
 * Everything that `weir up` of a checkout starts, on free ports and empty data. Its ready line is a contract, so that
 * this bench measures other versions too.
 */
export async function startStack(checkout: string, partitions: number, dir: string, callers: Callers) {
  const policy = join(dir, 'bench.yaml')
  await writeFile(policy, policyText(callers))
  let weir = await weirUp(['--policy', policy], {}, { checkout })
  try {
    if (await addPartitions(weir, partitions)) {
      // Every process begins with the new number, as in an installation that has had it for long.
      await weir.end('SIGTERM')
      weir = await weirUp(['--policy', policy], {}, { checkout, dir: weir.dir })
    }
  } catch (error) {
    await weir.close()
    throw error
  }
  const { api, adminToken, clickhouse: url, launcher } = weir.line
  const clickhouse = connectClickhouse(findClickhouse({}, url), 'bench')
  return {
    api,
    adminToken,
    clickhouse,
    ...callers,
    /** Ids of all processes by name, the launcher's among them. */
    pids: async (): Promise<Readonly<Record<string, number>>> => ({ ...(await weir.state()).pids, launcher }),
    async close() {
      await clickhouse.close()
      await weir.close()
    },
  }
}
