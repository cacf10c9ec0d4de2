import { execFile } from 'node:child_process'
import { readdirSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { offsetsSince, PartitionAdmin } from '@weir/kafka/partition-admin.ts'
import { securedKafkaServer } from '@weir/local-kafka/kafka-server.ts'
import { allFences } from '../docs/fences.ts'
import type { Stack } from './stack.ts'

/** What a server is started with; everything else in its folder is its data. */
const settings = new Set(['password', 'password.conf', 'server.properties', 'log4j2.properties'])

/** Kills a server and removes all its data. It stays down; released, it begins empty. */
export async function loseData(stack: Stack, name: 'clickhouse' | 'redis' | 'kafka'): Promise<void> {
  await stack.hold(name)
  const dir = join(stack.dir, name)
  for (const entry of readdirSync(dir)) if (!settings.has(entry)) rmSync(join(dir, entry), { recursive: true })
  if (name !== 'kafka') return
  const { kafka, kafkaController, kafkaOpen, kafkaSecured } = stack.ports
  const ports = [kafka, kafkaController, kafkaOpen, kafkaSecured]
  await securedKafkaServer.plan({ dir, ports, progress: () => undefined, environment: process.env }) // formats a new one
}

/** A backup of some hundred thousand rows takes a second or two. */
const statementDeadlineMs = 120_000

/** A server's configuration: one disk for backups, and a user who may do everything. */
const configuration = (folder: string) => `<clickhouse>
  <storage_configuration>
    <disks><backups><type>local</type><path>${folder}/</path></backups></disks>
  </storage_configuration>
  <backups><allowed_disk>backups</allowed_disk></backups>
  <profiles><default/></profiles>
  <quotas><default/></quotas>
  <users>
    <default>
      <password/>
      <networks><ip>::/0</ip></networks>
      <profile>default</profile>
      <quota>default</quota>
    </default>
  </users>
</clickhouse>
`

/** The statements of docs/backup.md, in its order. */
export const backupStatements: readonly string[] = allFences
  .filter(({ path, language }) => path === 'docs/backup.md' && language === 'sql')
  .flatMap(({ text }) => text.split(/;.*\n/))
  .filter((statement) => statement.trim() !== '')

/**
 * Runs statements on the data of the stack's ClickHouse, which is down, in the engine itself: the local server would
 * refuse BACKUP and RESTORE.
 */
export async function runInEngine({ dir }: Stack, statements: readonly string[]): Promise<void> {
  const file = join(dir, 'backup-configuration.xml')
  writeFileSync(file, configuration(join(dir, 'backups')))
  const program = join(import.meta.dirname, 'clickhouse-program.ts')
  const args = ['--disable-warning=ExperimentalWarning', program, join(dir, 'clickhouse'), file, ...statements]
  await promisify(execFile)(process.execPath, args, { timeout: statementDeadlineMs })
}

/** Has a stopped group read topics again from the first record since then, as `kafka-consumer-groups.sh` does. */
export async function moveGroupBack({ kafka }: Stack, group: string, topics: readonly string[], sinceMs: number) {
  const admin = new PartitionAdmin(kafka, group)
  try {
    for (const topic of topics) {
      for (const { partition, offset } of await offsetsSince(kafka, topic, sinceMs)) {
        await admin.commit(topic, partition, offset, '')
      }
    }
  } finally {
    await admin.close()
  }
}
