import { randomUUID } from 'node:crypto'
import { existsSync } from 'node:fs'
import { mkdir, rename, rm } from 'node:fs/promises'
import { resolve } from 'node:path'

const root = resolve(import.meta.dirname, '../../.weir')

/**
 * A folder of this checkout's `.weir` that `fill` has filled, once. It appears by a rename, so that it is always whole
 * and processes that fetch at once do not disturb each other. `name` says what is in it, with its version.
 */
export async function fetchOnce(name: string, fill: (folder: string) => Promise<void>): Promise<string> {
  const folder = resolve(root, name)
  if (existsSync(folder)) return folder
  const partial = `${folder}-${randomUUID()}`
  try {
    await mkdir(partial, { recursive: true })
    await fill(partial)
    await rename(partial, folder).catch((error: unknown) => {
      if (!existsSync(folder)) throw error // else another process was faster, and has the same
    })
  } finally {
    await rm(partial, { recursive: true, force: true })
  }
  return folder
}
