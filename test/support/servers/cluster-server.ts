import { readFileSync } from 'node:fs'
import { mkdir, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { projectRoot } from '@weir/cli/project.ts'
import { clickhouseServer } from '@weir/local-clickhouse/clickhouse-server.ts'
import type { NativeServer } from '@weir/local-programs/native-server.ts'

/** The cluster's name in the server's configuration. */
export const clusterName = 'main'

/** Another one, of two shards that are the same server: what is asked of it has every row twice. */
export const doubleClusterName = 'double'

/** Whether tests run on the two databases of a cluster (test/README.md). */
export const isOnCluster = process.env.WEIR_TEST_CLICKHOUSE_LAYOUT === 'cluster'

/** The engine takes what is at its own port for itself, and asks itself without a connection: nothing listens there. */
const itself = '<shard><replica><host>127.0.0.1</host><port>9000</port></replica></shard>'

/** All servers of a cluster have the same users. */
const password = 'of-the-cluster'

const configuration = (shard: string) => `<clickhouse>
    <zookeeper><implementation>testkeeper</implementation><node><host>localhost</host><port>2181</port></node></zookeeper>
    <tcp_port>9000</tcp_port>
    <macros><shard>${shard}</shard><replica>r1</replica></macros>
    <remote_servers>
      <${clusterName}>${itself}</${clusterName}>
      <${doubleClusterName}>${itself}${itself}</${doubleClusterName}>
    </remote_servers>`

/**
 * The local ClickHouse as the only server of a cluster: with macros, the cluster's name, and the engine's own stand-in
 * for Keeper in its memory. `Distributed` tables work. Replicated ones can be created and take no row, because no port
 * is there from which other replicas could fetch.
 */
export const clusterServer = (shard = 's1'): NativeServer => ({
  ...clickhouseServer,
  async plan(where) {
    const plan = await clickhouseServer.plan(where)
    const file = join(dirname(where.dir), `config-${shard}.xml`)
    await mkdir(dirname(file), { recursive: true })
    const own = readFileSync(join(projectRoot, 'infra/local/clickhouse/users.xml'), 'utf8')
    const text = own
      .replace('<clickhouse>', configuration(shard))
      .replace('KILL QUERY, CHECK ON', 'KILL QUERY, CHECK, SYSTEM SYNC REPLICA, CLUSTER, REMOTE ON')
    await writeFile(file, text)
    const passwordFile = join(dirname(where.dir), 'cluster-password')
    await writeFile(passwordFile, password)
    const { host } = new URL(plan.address)
    const [program, ...words] = plan.command
    return {
      ...plan,
      address: `http://default:${password}@${host}`,
      command: [program, ...words, '--users-file', file, '--password-file', passwordFile],
    }
  },
})
