import { randomUUID } from 'node:crypto'
import { createWriteStream } from 'node:fs'
import { rename, rm } from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'
import { Readable, type Writable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { ReadableStream } from 'node:stream/web'
import { WeirError } from '@weir/core/errors.ts'
import { type ConsoleAddress, type ConsoleRequest, openConsoleAnswer, unreachable } from './console-client.ts'

/** Where a download goes. */
export interface DownloadTarget {
  /** A file's path; undefined for `stdout`. */
  readonly file: string | undefined
  readonly stdout: Writable
  readonly signal: AbortSignal
}

/**
 * Writes a streamed answer of the console to a file or to standard output, as it comes. A file is written beside its
 * place and renamed once it is whole: under its name there is never a part of an answer. Returns the answer's headers.
 * Throws CONSOLE_UNAVAILABLE when the answer breaks off, CONFIG_INVALID when the file cannot be written.
 */
export async function download(
  address: ConsoleAddress,
  request: Pick<ConsoleRequest, 'path' | 'query'>,
  { file, stdout, signal }: DownloadTarget,
): Promise<Headers> {
  const { body, headers } = await openConsoleAnswer(address, request, { accept: '*/*' }, signal)
  let isBroken = false
  const source = Readable.fromWeb((body ?? new ReadableStream()) as ReadableStream)
  source.once('error', () => {
    isBroken = true
  })
  const beside = file === undefined ? undefined : join(dirname(file), `.${basename(file)}.${randomUUID()}`)
  try {
    if (file === undefined || beside === undefined) await pipeline(source, stdout, { end: false, signal })
    else {
      await pipeline(source, createWriteStream(beside, { flags: 'wx' }), { signal })
      await rename(beside, file)
    }
    return headers
  } catch (error) {
    if (beside !== undefined) await rm(beside, { force: true })
    if (isBroken) throw unreachable(address.url, error)
    const why = error instanceof Error ? error.message : String(error)
    throw new WeirError('CONFIG_INVALID', `${file ?? 'standard output'} cannot be written: ${why}`, error)
  }
}
