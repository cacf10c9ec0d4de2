import { randomUUID } from 'node:crypto'
import {
  closeSync,
  fsyncSync,
  mkdirSync,
  openSync,
  readdirSync,
  rmdirSync,
  rmSync,
  statfsSync,
  statSync,
  unlinkSync,
} from 'node:fs'
import { mkdir, rename, rm, stat } from 'node:fs/promises'
import { basename, join } from 'node:path'
import { WeirError } from '@weir/core/errors.ts'
import { type CrashPoint, noCrash } from '@weir/runtime/crash-point.ts'
import { gapName } from '../format/gap-file.ts'
import { segmentPath, segmentsIn } from '../format/segment-files.ts'
import { type JournalTopic, writeTopics } from '../format/state-files.ts'
import { trimOrphan } from '../read/frame-source.ts'
import { codeOf, hasSocket, isLocked, lockWithSocket } from './socket-lock.ts'

/** A journal's directory that this process holds: its socket listens until `release`. */
export interface DirectoryLock {
  /** A UUID; `journal` in every record. */
  readonly journal: string
  readonly path: string
  /**
   * Whether it still stands where it was made; a socket that was removed is created again. False means that another
   * process took it for dead: what is written from now on may never be read.
   */
  isStillOwner(): Promise<boolean>
  /** Stops listening: from now on any process may adopt it. What is in it stays. */
  release(): Promise<void>
}

/** Directories that a dead process had adopted, and now this one. */
const adoptedName = 'adopted'

/** Until it is held, a directory bears this ending and no process adopts it. */
const unheldEnding = '.starting'

/** A start takes less; what is older was left by a process that died in it, and holds nothing. */
const startingMsMax = 60_000

const journalPattern = /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/

/** Names of the journals in a folder; none where there is no such folder. */
export function journalsIn(folder: string): string[] {
  try {
    return readdirSync(folder).filter((name) => journalPattern.test(name))
  } catch (error) {
    if (codeOf(error) === 'ENOENT') return []
    throw error
  }
}

function syncDirectory(path: string): void {
  const fd = openSync(path, 'r')
  fsyncSync(fd)
  closeSync(fd)
}

/**
 * Makes and holds a directory of a new journal under `base`. Others see it from the moment that it is held; a death
 * before leaves an empty `.starting` directory, which a later process clears away.
 */
export async function createDirectory(
  base: string,
  topics: readonly JournalTopic[],
  crash: CrashPoint = noCrash,
): Promise<DirectoryLock> {
  const journal = randomUUID()
  const path = join(base, journal)
  const starting = `${path}${unheldEnding}`
  try {
    await mkdir(join(starting, adoptedName), { recursive: true, mode: 0o700 })
    crash('journal_made')
    writeTopics(starting, topics)
    writeTopics(base, topics)
    let stop = await lockWithSocket(starting)
    crash('journal_listening')
    await rename(starting, path)
    crash('journal_shown')
    syncDirectory(base)
    const { ino } = await stat(path)
    return {
      journal,
      path,
      async isStillOwner() {
        const found = await stat(path).catch(() => undefined)
        if (found?.ino !== ino) return false
        if (hasSocket(path)) return true
        const before = stop
        stop = await lockWithSocket(path)
        await before()
        return true
      },
      release: () => stop(),
    }
  } catch (error) {
    throw new WeirError(
      'JOURNAL_UNUSABLE',
      `cannot create a journal in ${base}: ${String(error)}. Give this user a directory on a disk of its own with WEIR_JOURNAL_DIR.`,
      error,
    )
  }
}

/** Paths of the directories that have been adopted into this one. */
export function adoptedIn(path: string): string[] {
  const folder = join(path, adoptedName)
  return journalsIn(folder).map((name) => join(folder, name))
}

async function clearStarts(base: string): Promise<void> {
  for (const name of readdirSync(base).filter((one) => one.endsWith(unheldEnding))) {
    const path = join(base, name)
    const age = Math.abs(Date.now() - (statSync(path, { throwIfNoEntry: false })?.mtimeMs ?? Date.now()))
    if (age > startingMsMax && !(await isLocked(path))) await rm(path, { recursive: true, force: true })
  }
}

/** True when it was this process that moved it. */
async function moved(from: string, to: string): Promise<boolean> {
  try {
    await rename(from, to)
    return true
  } catch (error) {
    if (codeOf(error) === 'ENOENT') return false
    throw error
  }
}

/**
 * Takes every dead directory under `base` over into `into`, each by one rename, which one of several adopters wins;
 * also what they had adopted themselves. A process killed between two renames leaves them nested, for the process that
 * adopts it next. Returns the paths of those new to it.
 */
export async function adoptOrphans(
  base: string,
  into: Pick<DirectoryLock, 'journal' | 'path'>,
  crash: CrashPoint = noCrash,
): Promise<string[]> {
  await clearStarts(base)
  const taken: string[] = []
  for (const journal of journalsIn(base)) {
    const from = join(base, journal)
    if (journal === into.journal || (await isLocked(from))) continue
    const to = join(into.path, adoptedName, journal)
    if (!(await moved(from, to))) continue
    crash('journal_adopted')
    trimOrphan(to)
    taken.push(to)
  }
  // What comes out of one may hold others in turn, as deep as processes died one after the other.
  const outers = adoptedIn(into.path)
  for (let outer = outers.pop(); outer !== undefined; outer = outers.pop()) {
    for (const inner of adoptedIn(outer)) {
      const to = join(into.path, adoptedName, basename(inner))
      if (!(await moved(inner, to))) continue
      crash('journal_unnested')
      trimOrphan(to)
      taken.push(to)
      outers.push(to)
    }
  }
  return taken
}

/**
 * Removes a directory of which Kafka has everything; throws while it holds adopted ones. What says how far Kafka is
 * goes after the segments, so that a death in between leaves nothing that would be sent again.
 */
export function removeDirectory(path: string, crash: CrashPoint = noCrash): void {
  const nested = join(path, adoptedName)
  if (statSync(nested, { throwIfNoEntry: false }) !== undefined) rmdirSync(nested)
  for (const segment of segmentsIn(path)) {
    unlinkSync(segmentPath(path, segment))
    crash('journal_segment_removed')
  }
  // The gap file as well, while `acked` still tells which of its gaps Kafka has.
  rmSync(join(path, gapName), { force: true })
  rmSync(path, { recursive: true, force: true })
}

/**
 * File systems, by their magic numbers, that are gone with the machine or the container; what a process wrote there was
 * not kept.
 */
const ephemeral: ReadonlyMap<number, string> = new Map([
  [0x01021994, 'tmpfs'],
  [0x858458f6, 'ramfs'],
  [0x794c7630, 'overlay'],
])

/**
 * Refuses a base directory whose disk does not outlive what happens to processes, unless it `isAllowed`; makes it if it
 * is missing.
 */
export function refuseEphemeral(
  base: string,
  isAllowed: boolean,
  typeOf = (path: string) => statfsSync(path).type,
): void {
  try {
    mkdirSync(base, { recursive: true, mode: 0o700 })
  } catch (error) {
    throw new WeirError(
      'JOURNAL_UNUSABLE',
      `cannot create ${base}: ${String(error)}. Set WEIR_JOURNAL_DIR to a directory that this user may write.`,
      error,
    )
  }
  const name = ephemeral.get(typeOf(base))
  if (name === undefined || isAllowed) return
  throw new WeirError(
    'JOURNAL_UNUSABLE',
    `${base} is on ${name}, which is lost with the container or the machine, along with every decision not yet in Kafka. Mount a disk there, or accept the loss with WEIR_JOURNAL_EPHEMERAL=1.`,
  )
}
