import type { CrashPoint } from '@weir/runtime/crash-point.ts'
import type { Logger } from '@weir/runtime/logger.ts'
import type { HeldDirectory, JournalTopic, JournalWriter } from './ports.ts'

export interface WriterOptions {
  readonly topics: readonly JournalTopic[]
  /** Of all segments, and of directories adopted. */
  readonly maxBytes: number
  readonly onFull: 'refuse' | 'admit'
  /** Milliseconds between fsyncs; undefined leaves it to the kernel: then only the machine's death loses anything. */
  readonly fsyncMs?: number | undefined
  readonly log: Logger
  readonly crash?: CrashPoint
  /** The directory is not ours any more: nothing that is appended will be found. The process has to start anew. */
  readonly onTakenAway?: () => void
  /** Given by tests and benches only. */
  readonly segmentBytes?: number
}

/** Begins to write in a directory that is held and empty. */
export async function openWriter(directory: HeldDirectory, _options: WriterOptions): Promise<JournalWriter> {
  throw new Error(`not there yet: ${directory.path}`)
}
