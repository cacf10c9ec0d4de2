import { execFile } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { existsSync } from 'node:fs'
import { mkdir, rename, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import type { NativeServer } from '@weir/runtime/native-server.ts'
import { kafkaLibs } from './kafka-libs.ts'
import { java, loggingFile, loggingProperties, serverProperties } from './server-files.ts'
import { servesClients } from './serves-clients.ts'

/** Kafka's own form of an id: 16 bytes in URL-safe base64, not beginning with a dash, which its tools take for a flag. */
function newClusterId(): string {
  const id = randomBytes(16).toString('base64url')
  return id.startsWith('-') ? `w${id.slice(1)}` : id
}

/** Where the data lies below the folder that the launcher gives. */
const dataDir = 'data'

/** Formats into a folder of its own and renames it, so that a crash in between leaves nothing half formatted. */
async function format(dir: string, libs: string): Promise<void> {
  const fresh = 'formatting'
  await rm(join(dir, fresh), { recursive: true, force: true })
  // The ports are only parsed here; the data does not keep them.
  const text = serverProperties({ dataDir: fresh, brokerPort: 9092, controllerPort: 9093 })
  await writeFile(join(dir, 'format.properties'), text)
  const [program, ...args] = java(libs, '64m')
  const tool = ['kafka.tools.StorageTool', 'format', '-t', newClusterId(), '-c', 'format.properties']
  const timeout = 60_000 // takes 1 s; a hung JVM must not hang the start
  await promisify(execFile)(program, [...args, ...tool], { cwd: dir, timeout })
  await rm(join(dir, 'format.properties'))
  await rename(join(dir, fresh), join(dir, dataDir))
}

/** Apache Kafka as one KRaft node on loopback. Its jars come from Maven into `.weir/kafka-libs` of the checkout. */
export const kafkaServer: NativeServer = {
  name: 'kafka',
  needs: [
    { program: 'java', install: 'apt-get install -y default-jre-headless' },
    { program: 'mvn', install: 'apt-get install -y maven' },
  ],
  docker: {
    command: 'docker run -d -p 127.0.0.1:9092:9092 apache/kafka:4.1.1',
    env: 'WEIR_KAFKA_BROKERS=127.0.0.1:9092',
  },
  portCount: 2,
  async plan({ dir, ports: [brokerPort = 0, controllerPort = 0], progress }) {
    await mkdir(dir, { recursive: true })
    const libs = await kafkaLibs(progress)
    await writeFile(join(dir, loggingFile), loggingProperties)
    if (!existsSync(join(dir, dataDir))) await format(dir, libs)
    await writeFile(join(dir, 'server.properties'), serverProperties({ dataDir, brokerPort, controllerPort }))
    return {
      command: [...java(libs, '384m'), 'kafka.Kafka', 'server.properties'],
      env: {},
      cwd: dir,
      address: `127.0.0.1:${brokerPort}`,
      ready: () => servesClients(brokerPort),
    }
  },
}
