import { execFile } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { existsSync } from 'node:fs'
import { mkdir, rename, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import type { NativeServer } from '@weir/runtime/native-server.ts'
import { kafkaLibs } from './kafka-libs.ts'
import { java, loggingProperties, serverProperties } from './server-files.ts'
import { servesClients } from './serves-clients.ts'

/** Kafka's own form of an id: 16 bytes in URL-safe base64, not beginning with a dash, which its tools take for a flag. */
function newClusterId(): string {
  const id = randomBytes(16).toString('base64url')
  return id.startsWith('-') ? `w${id.slice(1)}` : id
}

/** Formats into a folder of its own and renames it, so that a crash in between leaves nothing half formatted. */
async function format(dir: string, libs: string, dataDir: string): Promise<void> {
  const fresh = join(dir, 'formatting')
  await rm(fresh, { recursive: true, force: true })
  const properties = join(dir, 'format.properties')
  // The ports are only parsed here; the data does not keep them.
  await writeFile(properties, serverProperties({ dataDir: fresh, brokerPort: 9092, controllerPort: 9093 }))
  const [program, ...args] = java(libs, dir, '64m')
  const tool = ['kafka.tools.StorageTool', 'format', '-t', newClusterId(), '-c', properties]
  await promisify(execFile)(program, [...args, ...tool], { timeout: 60_000 }) // takes 1 s; a hung JVM must not hang the start
  await rm(properties)
  await rename(fresh, dataDir)
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
    await writeFile(join(dir, 'log4j2.properties'), loggingProperties)
    const dataDir = join(dir, 'data')
    if (!existsSync(dataDir)) await format(dir, libs, dataDir)
    const properties = join(dir, 'server.properties')
    await writeFile(properties, serverProperties({ dataDir, brokerPort, controllerPort }))
    return {
      command: [...java(libs, dir, '384m'), 'kafka.Kafka', properties],
      env: {},
      address: `127.0.0.1:${brokerPort}`,
      ready: () => servesClients(brokerPort),
    }
  },
}
