import { execFile } from 'node:child_process'
import { createHash } from 'node:crypto'
import { existsSync } from 'node:fs'
import { cp, readFile, rename, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { inProject } from '@weir/cli/project.ts'
import { pinned } from '../pinned/pinned.ts'

const run = promisify(execFile)
/** 40 MB; a slow mirror gets this long. */
const fetchDeadlineMs = 5 * 60_000

/** Fetches the SDKs by pip and npm, once per checkout and set of hashes: the folder has `python` and `node_modules`. */
export async function fetchSdks(): Promise<string> {
  const npm = join(import.meta.dirname, 'npm')
  const locks = [join(npm, 'package-lock.json'), inProject('test/support/pinned/suppliers-sdks.txt')]
  const hash = createHash('sha256')
  for (const file of locks) hash.update(await readFile(file))
  const folder = inProject('.weir', `suppliers-sdks-${hash.digest('hex').slice(0, 16)}`)
  if (existsSync(folder)) return folder
  const partial = `${folder}-${process.pid}`
  try {
    await cp(npm, partial, { recursive: true })
    const timeout = fetchDeadlineMs
    await run('npm', ['ci', '--ignore-scripts', '--no-audit', '--no-fund'], { cwd: partial, timeout })
    const target = ['--target', join(partial, 'python')]
    await run('python3', ['-m', 'pip', 'install', ...pinned('suppliers-sdks'), ...target], { timeout })
    await rename(partial, folder)
  } finally {
    await rm(partial, { recursive: true, force: true })
  }
  return folder
}
