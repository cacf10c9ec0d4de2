import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
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

/** Tells Redis that these records are safe, as far as it answers; says how many it was told of. */
export async function tellWritten(
  settlements: Pick<Settlements, 'recorded'>,
  corrections: readonly WrittenCorrection[],
): Promise<number> {
  let told = 0
  for (let at = 0; at < corrections.length; at += togetherMax) {
    const some = corrections.slice(at, at + togetherMax)
    const answers = await Promise.all(some.map((one) => settlements.recorded(one)))
    told += answers.filter((isTold) => isTold).length
  }
  return told
}
