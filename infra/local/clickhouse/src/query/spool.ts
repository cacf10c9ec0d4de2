import { randomUUID } from 'node:crypto'
import { createWriteStream } from 'node:fs'
import { mkdir, rm } from 'node:fs/promises'
import { join, resolve } from 'node:path'
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'

/**
 * Where the data of an INSERT waits until the engine reads it: one file per request, gone with the request. It costs no
 * memory, takes any format and any size, and was no slower than handing the bytes over in memory.
 */
export class Spool {
  readonly #folder: string

  private constructor(folder: string) {
    this.#folder = folder
  }

  /** Empties the folder: what is in it belongs to requests of a process that was killed. */
  static async open(path: string): Promise<Spool> {
    const folder = resolve(join(path, 'incoming'))
    if (/[*?{}]/.test(folder)) {
      throw new Error(
        `the data directory ${path} may not have any of * ? { } in its name: the engine takes it for a pattern`,
      )
    }
    await rm(folder, { recursive: true, force: true })
    await mkdir(folder, { recursive: true })
    return new Spool(folder)
  }

  /** Runs `use` with a file that holds these bytes. */
  async withFile<T>(bytes: Iterable<Buffer> | AsyncIterable<Buffer>, use: (file: string) => Promise<T>): Promise<T> {
    const file = join(this.#folder, randomUUID())
    try {
      await pipeline(Readable.from(bytes, { objectMode: false }), createWriteStream(file))
      return await use(file)
    } finally {
      await rm(file, { force: true })
    }
  }
}
