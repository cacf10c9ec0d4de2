import { spawn } from 'node:child_process'
import { createHash, randomUUID } from 'node:crypto'
import { existsSync } from 'node:fs'
import { mkdir, readFile, rename, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { verifySha256 } from '@weir/runtime/verify-sha256.ts'

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
      said = (said + chunk.toString()).slice(-2_000) // the error stands at the end of Maven's output
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
 * The folder with Kafka's jars, fetched when the pom or the list of hashes is new to this checkout. The folder is named
 * by the contents of both and appears by a rename, so that it is always whole and processes that fetch at once do not
 * disturb each other.
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
