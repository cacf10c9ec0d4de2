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

function isCounted(value: unknown): value is CountedOffset {
  if (!Array.isArray(value) || value.length !== 3) return false
  const [topicId, partition, offset] = value
  return (
    typeof topicId === 'string' &&
    /^[0-9a-f-]{36}$/.test(topicId) &&
    Number.isSafeInteger(partition) &&
    typeof offset === 'string' &&
    /^\d{1,19}$/.test(offset)
  )
}

/** Writes a cursor as text for addresses and files. */
export const writeExportCursor = ({ fromMs, toMs, counted }: ExportCursor): string =>
  Buffer.from(JSON.stringify([fromMs, toMs, counted])).toString('base64url')

/** Reads a cursor; undefined for a text that is none. */
export function readExportCursor(text: string): ExportCursor | undefined {
  let read: unknown
  try {
    read = JSON.parse(Buffer.from(text, 'base64url').toString())
  } catch {
    return undefined
  }
  if (!Array.isArray(read) || read.length !== 3) return undefined
  const [fromMs, toMs, counted] = read
  if (!isHour(fromMs) || !isHour(toMs) || fromMs > toMs) return undefined
  if (!Array.isArray(counted) || counted.length > partitionsMax || !counted.every(isCounted)) return undefined
  return { fromMs, toMs, counted }
}
