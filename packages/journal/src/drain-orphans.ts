import { join } from 'node:path'
import type { KafkaOptions } from '@weir/kafka/connect.ts'
import { readTopics } from '@weir/kafka/topics-file.ts'
import { createLogger } from '@weir/runtime/logger.ts'
import { waitUntil } from '@weir/runtime/wait-until.ts'
import { adoptedIn, journalsIn } from './directory/directory.ts'
import { isLocked } from './directory/socket-lock.ts'
import { type JournalTopic, readTopicsCopy } from './format/state-files.ts'
import { openJournal } from './open-journal.ts'

/** Only the watermarks of a journal that ends immediately are written. */
const maxBytes = 64 * 1024 * 1024

/** An empty journal is sent in a moment. */
const ownDeadlineMs = 5_000

/** Which journals are drained, and for how long at most. */
export interface DrainOptions extends KafkaOptions {
  readonly base: string
  readonly deadlineMs: number
  readonly signal: AbortSignal
}

/** The topics that watermarks are sent to: those of the journals before it. */
async function topicsOf(base: string): Promise<readonly JournalTopic[]> {
  const copy = readTopicsCopy(base)
  if (copy !== undefined) return copy
  return (await readTopics()).filter(({ name }) => /^weir\.(decisions|outcomes)\.v1$/.test(name))
}

async function deadIn(base: string): Promise<string[]> {
  const dead: string[] = []
  for (const journal of journalsIn(base)) {
    const path = join(base, journal)
    if (!(await isLocked(path))) dead.push(path, ...adoptedIn(path))
  }
  return dead
}

/**
 * Does what a starting ingress does for journals of dead processes, and ends when they are sent: with a journal of its
 * own, into which they are taken over. Those of running processes are left to them. Counts journals; `why` says why
 * Kafka does not take the records, and is empty when it does, or was not asked.
 */
export async function drainOrphans(options: DrainOptions) {
  const { base, deadlineMs, signal } = options
  const found = (await deadIn(base)).length
  if (found === 0) return { sent: 0, left: 0, why: '' }
  const topics = await topicsOf(base)
  const log = createLogger('journal', 'silent')
  const rest = { maxBytes, isEphemeralAllowed: true, onTakenAway: () => undefined } as const
  const journal = await openJournal({ ...options, ...rest, topics, log })
  try {
    const path = join(base, journal.id)
    const isSent = async () => adoptedIn(path).length === 0 && (await deadIn(base)).length === 0
    await waitUntil(isSent, { deadlineMs, everyMs: 100, signal })
    const left = adoptedIn(path).length + (await deadIn(base)).length
    return { sent: Math.max(0, found - left), left, why: journal.unsentFor }
  } finally {
    await journal.drain(ownDeadlineMs)
  }
}
