import { closeSync, fdatasyncSync, openSync, readFileSync, renameSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

/**
 * Replaces a small file atomically: a reader sees the old text or the new one, also after a kill between any two steps.
 */
export function replaceFile(path: string, text: string, sync = false): void {
  const next = `${path}.new`
  const fd = openSync(next, 'w', 0o600)
  try {
    writeFileSync(fd, text)
    if (sync) fdatasyncSync(fd)
  } finally {
    closeSync(fd)
  }
  renameSync(next, path)
}

/** A topic that a journal carries, by its index in the list. */
export interface JournalTopic {
  readonly name: string
  /** Over so many partitions its records are spread. */
  readonly partitions: number
}

const topicsName = 'topics.json'

const isCount = (value: unknown): value is number =>
  typeof value === 'number' && Number.isSafeInteger(value) && value >= 0

const isTopic = (value: unknown): value is JournalTopic => {
  const { name, partitions }: Partial<Record<string, unknown>> = typeof value === 'object' ? { ...value } : {}
  return typeof name === 'string' && isCount(partitions) && partitions > 0
}

/**
 * Writes next to the frames, or next to all journals, what a topic's index in the list means and over how many
 * partitions it is spread.
 */
export function writeTopics(directory: string, topics: readonly JournalTopic[]): void {
  replaceFile(
    join(directory, topicsName),
    `${JSON.stringify(topics.map(({ name, partitions }) => ({ name, partitions })))}\n`,
  )
}

/** Undefined when there is none that can be read. */
export function readTopicsCopy(directory: string): readonly JournalTopic[] | undefined {
  try {
    const topics: unknown = JSON.parse(readFileSync(join(directory, topicsName), 'utf8'))
    return Array.isArray(topics) && topics.every(isTopic) ? topics : undefined
  } catch {
    return undefined
  }
}

const ackedName = 'acked'

/** What Kafka is known to have. It may have more: what it is sent twice, metering drops by its number. */
export interface AckedSequences {
  /** Per topic, by its index in the list, and partition: the number that follows the last one acknowledged. */
  readonly next: readonly (readonly number[])[]
  /**
   * The same of the last one that a frame gives a number to, of those read by then. It differs in a dead directory,
   * where sums left open are numbered by the process that sends them, alike each time.
   */
  readonly numbered: readonly (readonly number[])[]
  /** The last generation of the gap file that has become a record. */
  readonly gapGeneration: number
}

const isCounts = (value: unknown): value is number[] => Array.isArray(value) && value.every(isCount)
const isTable = (value: unknown): value is number[][] => Array.isArray(value) && value.every(isCounts)

/** None are known when the file is missing or damaged; then all that is in the directory is sent. */
export function readAcked(directory: string): AckedSequences {
  try {
    const whole: unknown = JSON.parse(readFileSync(join(directory, ackedName), 'utf8'))
    const { next, numbered, gapGeneration }: Partial<Record<string, unknown>> =
      typeof whole === 'object' ? { ...whole } : {}
    if (isTable(next) && isTable(numbered) && isCount(gapGeneration)) return { next, numbered, gapGeneration }
  } catch {
    // Not there yet, or torn by the machine's death.
  }
  return { next: [], numbered: [], gapGeneration: 0 }
}

/** Before segments are deleted: without them it is the only memory of the numbers given. */
export function writeAcked(directory: string, { next, numbered, gapGeneration }: AckedSequences): void {
  const text = JSON.stringify({ next: next.map(withoutHoles), numbered: numbered.map(withoutHoles), gapGeneration })
  replaceFile(join(directory, ackedName), text)
}

/** Of a partition that had no record yet. */
const withoutHoles = (numbers: readonly number[]): number[] => Array.from(numbers, (number) => number ?? 0)
