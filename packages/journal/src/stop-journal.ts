import type { Logger } from '@weir/runtime/logger.ts'
import { type DirectoryLock, removeDirectory } from './directory/directory.ts'
import type { PublisherSupervisor } from './publish/publisher-supervisor.ts'
import type { JournalWriter } from './write/open-writer.ts'

export interface RunningJournal {
  readonly directory: DirectoryLock
  readonly writer: Pick<JournalWriter, 'close'>
  readonly supervisor: Pick<PublisherSupervisor, 'drain' | 'end'>
  readonly log: Logger
}

/**
 * Takes no more records and waits at most so long until Kafka has the rest. True when it has, and the directory is
 * gone. What the disk did not take cannot be closed here: sums left open and the gap page are read from a dead
 * directory only, so it gets no end marks, and stays.
 */
export async function stopJournal(journal: RunningJournal, deadlineMs: number): Promise<boolean> {
  const { directory, writer, supervisor, log } = journal
  const isWritten = await writer.close()
  if (!isWritten) log.error('the disk did not take the last records: the next process to start here ends this journal')
  const isDrained = isWritten && (await supervisor.drain(deadlineMs))
  await supervisor.end()
  await directory.release()
  if (!isDrained) return false
  try {
    removeDirectory(directory.path)
  } catch {
    // It holds journals of dead processes that are not sent yet; the next process takes them over.
  }
  return true
}
