import { execFile, spawn } from 'node:child_process'
import { createHash, randomBytes, randomUUID } from 'node:crypto'
import { existsSync } from 'node:fs'
import { mkdir, readFile, rename, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import type { NativeServer, PlanOptions, ServerPlan } from '@weir/runtime/native-server.ts'
import { serverPassword } from '@weir/runtime/server-password.ts'
import { verifySha256 } from '@weir/runtime/verify-sha256.ts'
import { openLoginRelay } from './login-relay.ts'
import { grantRights, servesClients, username } from './rights.ts'
import { java, loggingFile, loggingProperties, type ServerFilesOptions, serverProperties } from './server-files.ts'

const pomFile = join(import.meta.dirname, '..', 'pom.xml')
/** The hash of every jar: what a mirror serves in its stead is not run. */
const jarsFile = join(import.meta.dirname, '..', 'jars.sha256')
const libsRoot = join(import.meta.dirname, '..', '..', '..', '..', '.weir', 'kafka-libs')

/** A slow mirror gets this long for 43 MB before we give up with what Maven said. */
const mavenDeadlineMs = 10 * 60_000

/** Maven copies every jar the pom names into `folder`. Rejects with the end of what Maven said. */
function copyJars(folder: string): Promise<void> {
  const args = ['-q', '-B', '-C', '-f', pomFile, 'dependency:copy-dependencies', `-DoutputDirectory=${folder}`]
  return new Promise((resolve, reject) => {
    const maven = spawn('mvn', args, { stdio: ['ignore', 'pipe', 'pipe'], timeout: mavenDeadlineMs })
    let said = ''
    const keepEnd = (chunk: Buffer) => {
      said = (said + chunk.toString()).slice(-2_000) // the error is at the end of Maven's output
    }
    maven.stdout.on('data', keepEnd)
    maven.stderr.on('data', keepEnd)
    maven.once('error', reject)
    maven.once('exit', (code) => {
      if (code === 0) resolve()
      else reject(new Error(`fetching Kafka's jars failed: mvn ${args.join(' ')} ended with ${code}\n${said}`))
    })
  })
}

/**
 * Returns the folder with Kafka's jars, which are fetched when the pom or the list of hashes is new to this checkout.
 * The folder is named by the contents of both and appears by a rename, so that it is always whole, and processes that
 * fetch concurrently do not disturb each other.
 */
export async function kafkaLibs(progress: (line: string) => void): Promise<string> {
  const version = createHash('sha256')
    .update(await readFile(pomFile))
    .update(await readFile(jarsFile))
    .digest('hex')
    .slice(0, 16)
  const folder = join(libsRoot, version)
  if (existsSync(folder)) return folder
  progress("fetching Kafka's jars with Maven, 43 MB, once")
  const partial = join(libsRoot, `partial-${randomUUID()}`)
  try {
    await mkdir(partial, { recursive: true })
    await copyJars(partial)
    await verifySha256(partial, jarsFile)
    await rename(partial, folder).catch((error: unknown) => {
      if (!existsSync(folder)) throw error // else another process was faster, and its jars are the same
    })
  } finally {
    await rm(partial, { recursive: true, force: true })
  }
  return folder
}

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

/** Writes the files that Kafka is started from. */
async function prepare(
  { dir, progress }: Pick<PlanOptions, 'dir' | 'progress'>,
  files: Omit<ServerFilesOptions, 'dataDir'>,
): Promise<Pick<ServerPlan, 'command' | 'env' | 'cwd'>> {
  const libs = await kafkaLibs(progress)
  await writeFile(join(dir, loggingFile), loggingProperties)
  if (!existsSync(join(dir, dataDir))) await format(dir, libs)
  const properties = join(dir, 'server.properties')
  await rm(properties, { force: true }) // an earlier version's may be readable by others, and would stay so
  await writeFile(properties, serverProperties({ dataDir, ...files }), { mode: 0o600 })
  return { command: [...java(libs, '640m'), 'kafka.Kafka', 'server.properties'], env: {}, cwd: dir }
}

/** Apache Kafka as one KRaft node on loopback for tests: every caller may do everything. Maven fetches the jars. */
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
    return {
      ...(await prepare({ dir, progress }, { brokerPort, controllerPort })),
      address: `127.0.0.1:${brokerPort}`,
      ready: () => servesClients(brokerPort),
    }
  },
}

/** The same where callers without a password may only read, and join groups that are not Weir's own. */
export const securedKafkaServer: NativeServer = {
  ...kafkaServer,
  portCount: 4,
  async plan({ dir, ports: [relay = 0, controller = 0, open = 0, secured = 0], progress }) {
    await mkdir(dir, { recursive: true, mode: 0o700 })
    const { text: password } = serverPassword(dir)
    const files = { brokerPort: open, controllerPort: controller, secured: { port: secured, username, password } }
    return {
      ...(await prepare({ dir, progress }, files)),
      address: `127.0.0.1:${relay}`,
      login: { address: `127.0.0.1:${secured}`, username, password },
      openRelay: () => openLoginRelay(relay, { open, secured }),
      ready: async () => (await servesClients(open)) && grantRights(secured, password),
    }
  },
}
