import { readdirSync, statSync } from 'node:fs'
import { basename, join } from 'node:path'
import { adoptedIn, journalsIn } from './directory/directory.ts'
import { isLocked } from './directory/socket-lock.ts'
import type { CorruptRange } from './read/frame-source.ts'
import { JournalReader, NextSequences } from './read/journal-reader.ts'

/** Numbers that no record bears. */
export interface Hole {
  readonly topic: string
  readonly partition: number
  readonly from: number
  /** Not included. */
  readonly to: number
}

/** One journal's directory, looked at and left as it is. */
export interface JournalReport {
  readonly journal: string
  readonly path: string
  /**
   * `running`: its process holds it. `dead`: the next process that starts or looks takes it over. `adopted`: `by` that
   * one.
   */
  readonly state: 'running' | 'dead' | 'adopted'
  readonly by?: string
  /** Records that Kafka is not known to have. */
  readonly waiting: number
  /** When the oldest of them was appended. */
  readonly oldestMs?: number
  /** On disk, with what was taken ahead. */
  readonly bytes: number
  /** Positions where nothing could be read. */
  readonly damage: readonly CorruptRange[]
  readonly holes: readonly Hole[]
  /** Why it cannot be read at all. */
  readonly problem?: string
}

/** Read in one go; nothing of it is kept. */
const readBytes = 1024 * 1024

/**
 * A directory that is written meanwhile may look damaged or holed where it just changes; twice in the same place it is
 * so.
 */
const looksMax = 3

type Contents = Pick<JournalReport, 'waiting' | 'oldestMs' | 'damage' | 'holes'>

function readContents(path: string): Contents {
  const reader = new JournalReader(path)
  const { topics, damage } = reader
  const next = new NextSequences(topics.length, reader.acknowledgedUpTo)
  const holes: Hole[] = []
  let waiting = 0
  let oldestMs = Number.POSITIVE_INFINITY
  try {
    for (let some = reader.read(readBytes); some.length > 0; some = reader.read(readBytes)) {
      for (const record of some) {
        const { topic, partition, seq } = record
        const from = next.get(topic, partition)
        if (seq > from) holes.push({ topic: topics[topic]?.name ?? '', partition, from, to: seq })
        next.pass(record)
        oldestMs = Math.min(oldestMs, record.appendedMs)
      }
      waiting += some.length
    }
  } finally {
    reader.close()
  }
  return { waiting, ...(waiting > 0 ? { oldestMs } : {}), damage, holes }
}

function bytesIn(path: string): number {
  return readdirSync(path, { withFileTypes: true })
    .filter((entry) => entry.isFile())
    .reduce((sum, { name }) => sum + (statSync(join(path, name), { throwIfNoEntry: false })?.blocks ?? 0) * 512, 0)
}

const positionsOf = ({ damage, holes }: Contents) => JSON.stringify([damage, holes])

function look(path: string, state: JournalReport['state']): Contents & { readonly bytes: number } {
  let contents = readContents(path)
  for (let looks = 1; looks < looksMax && contents.damage.length + contents.holes.length > 0; looks += 1) {
    if (state === 'dead') break
    const again = readContents(path)
    if (positionsOf(again) === positionsOf(contents)) break
    contents = again
  }
  return { ...contents, bytes: bytesIn(path) }
}

function inspect(path: string, state: JournalReport['state'], by?: string): JournalReport {
  const journal = basename(path)
  const head = { journal, path, state, ...(by === undefined ? {} : { by }) }
  try {
    return { ...head, ...look(path, state) }
  } catch (error) {
    return { ...head, waiting: 0, bytes: 0, damage: [], holes: [], problem: String(error) }
  }
}

/**
 * Every journal under `base`, with those that a process has taken over after it. One that is removed meanwhile is left
 * out.
 */
export async function inspectJournals(base: string): Promise<JournalReport[]> {
  const reports: JournalReport[] = []
  for (const journal of journalsIn(base)) {
    const path = join(base, journal)
    const isRunning = await isLocked(path)
    reports.push(inspect(path, isRunning ? 'running' : 'dead'))
    for (const inner of adoptedIn(path)) reports.push(inspect(inner, isRunning ? 'adopted' : 'dead', journal))
  }
  return reports.filter(({ path }) => statSync(path, { throwIfNoEntry: false }) !== undefined)
}
