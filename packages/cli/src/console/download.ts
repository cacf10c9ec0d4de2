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
  /** Called with the bytes so far. */
  readonly onBytes: (bytes: number) => void
}

/**
 * Writes a streamed answer of the console to a file or to standard output, as it comes. A file is written beside its
 * place and renamed once it is whole: under its name there is never a part of an answer. Returns the answer's headers.
 * Throws CONSOLE_UNAVAILABLE when the answer breaks off, COMMAND_INVALID when the file cannot be written.
 */
export async function download(
  address: ConsoleAddress,
  request: Pick<ConsoleRequest, 'path' | 'query'>,
  { file, stdout, signal, onBytes }: DownloadTarget,
): Promise<Headers> {
  const { body, headers } = await openConsoleAnswer(address, request, { accept: '*/*' }, signal)
  const source = Readable.fromWeb((body ?? new ReadableStream()) as ReadableStream)
  let bytes = 0
  const counted = async function* (parts: AsyncIterable<Uint8Array>) {
    for await (const part of parts) {
      bytes += part.length
      onBytes(bytes)
      yield part
    }
  }
  const beside = file === undefined ? undefined : join(dirname(file), `.${basename(file)}.${randomUUID()}`)
  const target = beside === undefined ? stdout : createWriteStream(beside, { flags: 'wx' })
  // The one that fails has its error first; then the pipeline destroys the other with it.
  let failed: 'source' | 'target' | undefined
  source.once('error', () => {
    failed ??= 'source'
  })
  target.once('error', () => {
    failed ??= 'target'
  })
  try {
    await pipeline(source, counted, target, { end: target !== stdout, signal })
    if (file !== undefined && beside !== undefined) await rename(beside, file)
    return headers
  } catch (error) {
    if (beside !== undefined) await rm(beside, { force: true })
    if (failed === 'source') throw unreachable(address.url, error)
    const why = error instanceof Error ? error.message : String(error)
    throw new WeirError('COMMAND_INVALID', `${file ?? 'standard output'} cannot be written: ${why}`, error)
  }
}
