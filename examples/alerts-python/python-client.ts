import { execFile } from 'node:child_process'
import { existsSync } from 'node:fs'
import { mkdir, rename, rm } from 'node:fs/promises'
import { promisify } from 'node:util'
import { inProject } from '@weir/cli/project.ts'

/** As in the file that pins it by its hashes. */
const version = '2.16.1'
/** 4 MB; a slow mirror gets this long. */
const fetchDeadlineMs = 2 * 60_000

/** Fetches Python's client of Kafka by pip, once per checkout; returns the folder for PYTHONPATH. */
export async function fetchPythonClient(): Promise<string> {
  const modules = inProject('.weir', `confluent-kafka-${version}`)
  if (existsSync(modules)) return modules
  const partial = `${modules}-${process.pid}`
  const file = inProject('test/support/pinned/confluent-kafka.txt')
  const pinned = ['--quiet', '--no-deps', '--require-hashes', '--requirement', file]
  try {
    await mkdir(partial, { recursive: true })
    await promisify(execFile)('python3', ['-m', 'pip', 'install', ...pinned, '--target', partial], {
      timeout: fetchDeadlineMs,
    })
    await rename(partial, modules)
  } finally {
    await rm(partial, { recursive: true, force: true })
  }
  return modules
}
