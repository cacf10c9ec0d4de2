import { randomUUID } from 'node:crypto'
import { existsSync } from 'node:fs'
import { mkdir, rename, rm } from 'node:fs/promises'

/**
 * A folder that `fill` has filled, once. It appears by a rename, so that it is always whole and processes that fetch at
 * once do not disturb each other. Its name says what is in it, with its version.
 */
export async function fetchOnce(folder: string, fill: (folder: string) => Promise<void>): Promise<void> {
  if (existsSync(folder)) return
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
}
