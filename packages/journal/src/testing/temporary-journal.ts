import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createLogger } from '@weir/runtime/logger.ts'
import { createDirectory, type DirectoryLock } from '../directory/directory.ts'
import { JournalReader, type JournalRecord } from '../read/journal-reader.ts'
import { type JournalWriter, openWriter, type WriterOptions } from '../write/open-writer.ts'

/** For tests: two topics as the ingress has them. */
export const testTopics = [
  { name: 'decisions', partitions: 3 },
  { name: 'outcomes', partitions: 2 },
]

const mebibyte = 1024 * 1024

/** For tests: small, and silent. */
export const testOptions: WriterOptions = {
  topics: testTopics,
  maxBytes: 64 * mebibyte,
  segmentBytes: mebibyte,
  log: createLogger('journal', 'silent'),
}

/** For tests: a base directory that goes with the test. */
export class TemporaryBase implements AsyncDisposable {
  readonly path = mkdtempSync(join(tmpdir(), 'weir-journal-'))
  readonly #open: { readonly writer: JournalWriter; readonly directory: DirectoryLock }[] = []

  async open(options: Partial<WriterOptions> = {}): Promise<{ writer: JournalWriter; directory: DirectoryLock }> {
    const directory = await createDirectory(this.path, testTopics)
    const writer = await openWriter(directory, { ...testOptions, ...options })
    const opened = { writer, directory }
    this.#open.push(opened)
    return opened
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const { writer, directory } of this.#open) {
      await writer.close()
      await directory.release()
    }
    rmSync(this.path, { recursive: true, force: true })
  }
}

/** For tests: all that is in a dead directory. */
export function readDead(path: string): JournalRecord[] {
  const reader = new JournalReader(path)
  const all: JournalRecord[] = []
  for (let some = reader.read(mebibyte); some.length > 0; some = reader.read(mebibyte)) all.push(...some)
  reader.close()
  return all
}

/** For tests: `topic/partition/seq` and the value. */
export const texts = (records: readonly JournalRecord[]): string[] =>
  records.map(({ topic, partition, seq, value }) => `${topic}/${partition}/${seq} ${value.toString()}`)
