import type { Period } from './forecast.ts'

/** Up to which offset the records of a partition are counted, in one life of the topic. */
export type CountedOffset = readonly [topicId: string, partition: number, offset: string]

/** How far an export goes: whole hours from the first one that was ever exported, and the records that were there. */
export interface ExportCursor extends Period {
  readonly counted: readonly CountedOffset[]
}

const hourMs = 3_600_000
/** Partitions of all lives of a topic. */
const partitionsMax = 10_000

const isHour = (value: unknown): value is number =>
  typeof value === 'number' && Number.isSafeInteger(value) && value >= 0 && value % hourMs === 0

/** By topic in the text: a topic's id stands once, however many partitions it has. */
type CountedTopic = readonly [topicId: string, partitions: readonly (readonly [partition: number, offset: string])[]]

const isCounted = ([topicId, partition, offset]: readonly unknown[]): boolean =>
  typeof topicId === 'string' &&
  /^[0-9a-f-]{36}$/.test(topicId) &&
  Number.isSafeInteger(partition) &&
  typeof offset === 'string' &&
  /^\d{1,19}$/.test(offset)

/** Writes a cursor as text for addresses, which hold two, and for files. */
export function writeExportCursor({ fromMs, toMs, counted }: ExportCursor): string {
  const topics = Map.groupBy(counted, ([topicId]) => topicId)
  const byTopic = Array.from(topics, ([topicId, all]) => [topicId, all.map(([, ...place]) => place)])
  return Buffer.from(JSON.stringify([fromMs, toMs, byTopic])).toString('base64url')
}

/** Reads a cursor; undefined for a text that is none. */
export function readExportCursor(text: string): ExportCursor | undefined {
  try {
    const [fromMs, toMs, topics]: readonly unknown[] = JSON.parse(Buffer.from(text, 'base64url').toString())
    if (!isHour(fromMs) || !isHour(toMs) || fromMs > toMs) return undefined
    const counted = (topics as readonly CountedTopic[]).flatMap(([topicId, all]) =>
      all.map(([partition, offset]): CountedOffset => [topicId, partition, offset]),
    )
    return counted.length <= partitionsMax && counted.every(isCounted) ? { fromMs, toMs, counted } : undefined
  } catch {
    // No JSON, or JSON of another shape.
    return undefined
  }
}
