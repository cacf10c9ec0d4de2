import { randomBytes } from 'node:crypto'
import { appendFile, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { kafkaServer } from '@weir/local-kafka/kafka-server.ts'
import type { NativeServer, ServerPlan } from '@weir/local-programs/native-server.ts'
import { type RunningServer, startServer } from './start-server.ts'

/** As the plan names it, in the folder that it starts Kafka in. */
const propertiesFile = 'server.properties'

/** The local Kafka with further settings of a broker, and whatever else `prepare` does to its files. */
export function kafkaWith(
  settings: Readonly<Record<string, string | number>>,
  prepare: (plan: ServerPlan, ports: readonly number[]) => Promise<void> = async () => undefined,
): NativeServer {
  return {
    ...kafkaServer,
    async plan(options) {
      const plan = await kafkaServer.plan(options)
      // Of two lines for one setting Java takes the last.
      const lines = Object.entries(settings).map(([name, value]) => `${name}=${value}\n`)
      await appendFile(join(plan.cwd, propertiesFile), lines.join(''))
      await prepare(plan, options.ports)
      return plan
    },
  }
}

/** An id in the form of Kafka's: 16 bytes, without the dash at its beginning that a tool takes for a flag. */
export const newKafkaId = (): string => randomBytes(16).toString('base64url').replace(/^-/, 'w')

/** Makes the formatted folder of a plan that of another node. */
export async function becomeNode(cwd: string, nodeId: number, clusterId: string): Promise<void> {
  const meta = { version: 1, 'node.id': nodeId, 'cluster.id': clusterId, 'directory.id': newKafkaId() }
  const lines = Object.entries(meta).map(([name, value]) => `${name}=${value}\n`)
  await writeFile(join(cwd, 'data', 'meta.properties'), lines.join(''))
}

/** Starts the local Kafka with further settings of a broker. */
export const startKafkaWith = (settings: Readonly<Record<string, string | number>>): Promise<RunningServer> =>
  startServer(kafkaWith(settings))

const settingIn = (text: string, name: RegExp) => text.match(name)?.[1] ?? ''

/** Starts a second broker of the cluster that the first one is the controller of. */
export async function startSecondBroker(first: RunningServer): Promise<RunningServer> {
  const firstDir = join(first.dir, 'data')
  const voters = settingIn(await readFile(join(firstDir, propertiesFile), 'utf8'), /^controller\.quorum\.voters=(.*)$/m)
  const clusterId = settingIn(await readFile(join(firstDir, 'data', 'meta.properties'), 'utf8'), /^cluster\.id=(.*)$/m)
  const settings = { 'process.roles': 'broker', 'node.id': 2, 'controller.quorum.voters': voters }
  return startServer(
    kafkaWith(settings, async ({ cwd }, [port]) => {
      await appendFile(join(cwd, propertiesFile), `listeners=PLAINTEXT://127.0.0.1:${port}\n`)
      await becomeNode(cwd, 2, clusterId)
    }),
  )
}
