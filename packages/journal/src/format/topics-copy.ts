import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { replaceFile } from './replace-file.ts'

/** A topic that a journal carries, by its place in the list. */
export interface JournalTopic {
  readonly name: string
  /** Over so many partitions its records are spread. */
  readonly partitions: number
}

const fileName = 'topics.json'

const isTopic = (value: unknown): value is JournalTopic => {
  if (typeof value !== 'object' || value === null) return false
  const { name, partitions }: Partial<Record<string, unknown>> = { ...value }
  return (
    typeof name === 'string' && typeof partitions === 'number' && Number.isSafeInteger(partitions) && partitions > 0
  )
}

/**
 * Writes down beside the frames, or beside all journals, what a topic's place in the list means and over how many
 * partitions it is spread.
 */
export function writeTopics(directory: string, topics: readonly JournalTopic[]): void {
  replaceFile(
    join(directory, fileName),
    `${JSON.stringify(topics.map(({ name, partitions }) => ({ name, partitions })))}\n`,
  )
}

/** Undefined when there is none that can be read. */
export function readTopicsCopy(directory: string): readonly JournalTopic[] | undefined {
  try {
    const topics: unknown = JSON.parse(readFileSync(join(directory, fileName), 'utf8'))
    return Array.isArray(topics) && topics.every(isTopic) ? topics : undefined
  } catch {
    return undefined
  }
}

/** The partition counts last written down under `base`, by topic name, for a start while Kafka is away. */
export function savedPartitions(base: string): ReadonlyMap<string, number> {
  return new Map((readTopicsCopy(base) ?? []).map(({ name, partitions }) => [name, partitions]))
}
