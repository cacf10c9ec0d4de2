import { createHash, randomUUID } from 'node:crypto'
import { existsSync } from 'node:fs'
import { cp, mkdir, rename, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { inProject } from '@weir/cli/project.ts'
import { kafkaServer } from '@weir/local-kafka/kafka-server.ts'
import { serverProperties } from '@weir/local-kafka/server-files.ts'
import { kafkaProgram } from '@weir/local-programs/server-programs.ts'

/** As `kafkaServer` names its folder. */
const folder = 'data'

/**
 * Puts the formatted folder of a Kafka without data into `dir`, so that its start needs no other virtual machine
 * before: dozens of tests start a Kafka. The first call formats one, which stays in the checkout while jars and
 * settings are the same.
 */
export async function takeFormatted(dir: string): Promise<void> {
  const libs = kafkaProgram.folder
  const settings = serverProperties({ dataDir: folder, brokerPort: 1, controllerPort: 2 })
  const version = createHash('sha256').update(libs).update(settings).digest('hex').slice(0, 16)
  const formatted = inProject('.weir', 'formatted-kafka', version)
  if (!existsSync(formatted)) {
    const fresh = `${formatted}-${randomUUID()}`
    await kafkaServer.plan({ dir: fresh, ports: [1, 2], progress: () => undefined, environment: process.env })
    // Another process may have been faster: its folder is as good.
    await rename(join(fresh, folder), formatted).catch(() => undefined)
    await rm(fresh, { recursive: true })
  }
  await mkdir(dir, { recursive: true })
  await cp(formatted, join(dir, folder), { recursive: true })
}
