import { execFile } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { existsSync } from 'node:fs'
import { mkdir, rename, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { inLines } from '@weir/local-programs/fetch-progress.ts'
import { findPrograms } from '@weir/local-programs/find-program.ts'
import type { NativeServer, PlanOptions, ServerPlan } from '@weir/local-programs/native-server.ts'
import { javaProgram, kafkaProgram } from '@weir/local-programs/server-programs.ts'
import { serverPassword } from '@weir/runtime/server-password.ts'
import { openLoginRelay } from './login-relay.ts'
import { grantRights, servesClients, username } from './rights.ts'
import {
  type JavaFiles,
  java,
  loggingFile,
  loggingProperties,
  type ServerFilesOptions,
  serverProperties,
} from './server-files.ts'

/**
 * Makes an id in Kafka's form: 16 bytes in URL-safe base64, without the leading dash that its tools take for a flag.
 */
function newClusterId(): string {
  const id = randomBytes(16).toString('base64url')
  return id.startsWith('-') ? `w${id.slice(1)}` : id
}

/** The folder of the data, below the one that the launcher gives. */
const dataDir = 'data'

/** Formats into a folder of its own and renames it, so that a crash in between leaves nothing half formatted. */
async function format(dir: string, files: JavaFiles): Promise<void> {
  const fresh = 'formatting'
  await rm(join(dir, fresh), { recursive: true, force: true })
  // The ports are only parsed here; the data does not keep them.
  const text = serverProperties({ dataDir: fresh, brokerPort: 9092, controllerPort: 9093 })
  await writeFile(join(dir, 'format.properties'), text)
  const [program, ...args] = java(files, '64m')
  const tool = ['kafka.tools.StorageTool', 'format', '-t', newClusterId(), '-c', 'format.properties']
  const timeout = 60_000 // takes 1 s; a hung JVM must not hang the start
  await promisify(execFile)(program, [...args, ...tool], { cwd: dir, timeout })
  await rm(join(dir, 'format.properties'))
  await rename(join(dir, fresh), join(dir, dataDir))
}

const needs = [javaProgram, kafkaProgram]

/** Writes the files that Kafka is started from. */
async function prepare(
  { dir, progress, environment }: Omit<PlanOptions, 'ports'>,
  files: Omit<ServerFilesOptions, 'dataDir'>,
  classes?: string,
): Promise<Pick<ServerPlan, 'command' | 'env' | 'cwd'>> {
  const [program = '', libs = ''] = await findPrograms(needs, { environment, tell: inLines(progress) })
  const found = { program, libs }
  await writeFile(join(dir, loggingFile), loggingProperties)
  if (!existsSync(join(dir, dataDir))) await format(dir, found)
  const properties = join(dir, 'server.properties')
  await rm(properties, { force: true }) // an earlier version's may be readable by others, and would stay so
  await writeFile(properties, serverProperties({ dataDir, ...files }), { mode: 0o600 })
  const more = classes === undefined ? found : { ...found, classes }
  return { command: [...java(more, '640m'), 'kafka.Kafka', 'server.properties'], env: {}, cwd: dir }
}

/** Apache Kafka as one KRaft node on loopback for tests: every caller may do everything. */
export const kafkaServer: NativeServer = {
  name: 'kafka',
  needs,
  docker: {
    command: 'docker run -d -p 127.0.0.1:9092:9092 apache/kafka:4.1.1',
    env: 'WEIR_KAFKA_BROKERS=127.0.0.1:9092',
  },
  portCount: 2,
  async plan({ dir, ports: [brokerPort = 0, controllerPort = 0], ...options }) {
    await mkdir(dir, { recursive: true })
    return {
      ...(await prepare({ dir, ...options }, { brokerPort, controllerPort })),
      address: `127.0.0.1:${brokerPort}`,
      ready: () => servesClients(brokerPort),
    }
  },
}

/** The same where callers without a password may only read, and join groups that are not Weir's own. */
export const securedKafkaServer: NativeServer = {
  ...kafkaServer,
  portCount: 4,
  async plan({ dir, ports: [relay = 0, controller = 0, open = 0, secured = 0], ...options }) {
    await mkdir(dir, { recursive: true, mode: 0o700 })
    const { text: password } = serverPassword(dir)
    const files = { brokerPort: open, controllerPort: controller, secured: { port: secured, username, password } }
    return {
      ...(await prepare({ dir, ...options }, files, 'classes.jsa')),
      address: `127.0.0.1:${relay}`,
      login: { address: `127.0.0.1:${secured}`, username, password },
      openRelay: () => openLoginRelay(relay, { open, secured }),
      ready: async () => (await servesClients(open)) && grantRights(secured, password),
    }
  },
}
