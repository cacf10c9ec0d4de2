import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import type { Settlements } from '@weir/redis/settlements.ts'

/** A decision whose correction stands in a journal. */
export interface WrittenCorrection {
  readonly subject: string
  /** Of the decision. */
  readonly id: string
}

/** In a record, from its subject to what it corrects; no value can contain an unescaped quote, so nothing else looks like it. */
const pattern =
  /"subject":("(?:[^"\\]|\\.)*"),"key_id":(?:(?!"subject":).){0,20000}?,"corrects":"([0-9a-f-]{36})","adjustment":/gs

/** More than a process can have settled and not told Redis of, many times over. */
const correctionsMax = 100_000
/** Well within the minute after which another process writes what is still owed. */
const tellMsMax = 30_000
const tellAgainMs = 100
/** Asked of Redis at once. */
const togetherMax = 32

/**
 * The corrections in all journals of this machine that still have them, those of dead processes above all: to be asked before
 * these are taken over, sent and removed. A process that is killed after it wrote a record and before Redis knew leaves it owed; whoever starts next tells Redis.
 */
export async function findWrittenCorrections(base: string): Promise<readonly WrittenCorrection[]> {
  const found: WrittenCorrection[] = []
  const names = await readdir(base, { recursive: true }).catch(() => [])
  for (const name of names.filter((one) => one.endsWith('.seg'))) {
    // One that was sent and deleted meanwhile has nothing more to tell.
    const bytes = await readFile(join(base, name)).catch(() => Buffer.alloc(0))
    if (!bytes.includes('"corrects":"')) continue
    for (const [, subject = '""', id = ''] of bytes.toString('latin1').matchAll(pattern)) {
      if (found.length >= correctionsMax) return found
      found.push({ subject: String(JSON.parse(Buffer.from(subject, 'latin1').toString('utf8'))), id })
    }
  }
  return found
}

/**
 * Tells Redis that these records are safe. Right after a start it may not be connected yet: it is asked again until it knows of each,
 * or the time is over. Says how many it was not told of.
 */
export async function tellWritten(
  settlements: Pick<Settlements, 'recorded'>,
  corrections: readonly WrittenCorrection[],
): Promise<number> {
  const untilMs = performance.now() + tellMsMax
  let left = corrections
  while (left.length > 0) {
    const unknown: WrittenCorrection[] = []
    for (let at = 0; at < left.length; at += togetherMax) {
      const some = left.slice(at, at + togetherMax)
      const answers = await Promise.all(some.map((one) => settlements.recorded(one)))
      unknown.push(...some.filter((_, number) => answers[number] !== true))
    }
    left = unknown
    if (left.length === 0 || performance.now() > untilMs) break
    await delay(tellAgainMs, undefined, { ref: false })
  }
  return left.length
}
