import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'

/** A decision whose correction is in a journal. */
export interface WrittenCorrection {
  readonly subject: string
  /** The topmost of its tree; absent for the subject itself. */
  readonly root?: string | undefined
  /** Of the decision. */
  readonly id: string
}

/** No value can contain an unescaped quote, so nothing else looks like these. */
const subjectName = '"subject":'
const correctsName = '"corrects":"'
const pattern = /^"subject":("(?:[^"\\]|\\.)*"),"key_id":.*,"corrects":"([0-9a-f-]{36})","adjustment":$/s
/** The last of the subject's ancestors. */
const rootPattern = /,"parents":\[(?:"(?:[^"\\]|\\.)*",)*("(?:[^"\\]|\\.)*")\]/
/** From there to the end of what `pattern` matches. */
const tailBytes = `${correctsName}00000000-0000-0000-0000-000000000000","adjustment":`.length

/** Many times the corrections that a process can have settled without an acknowledgement of Redis. */
const correctionsMax = 100_000

/**
 * The corrections in the journals of a folder, however deep they lie in it; of one journal, where the folder is its
 * directory. A process that is killed after it wrote a record and before Redis knew leaves that record pending in
 * Redis. The process that adopts the journal therefore reads it before any of it is sent and removed, and reports the
 * corrections to Redis.
 */
export async function findWrittenCorrections(folder: string): Promise<readonly WrittenCorrection[]> {
  const found: WrittenCorrection[] = []
  const names = await readdir(folder, { recursive: true }).catch(() => [])
  for (const name of names.filter((one) => one.endsWith('.seg'))) {
    // One that a living process has sent and deleted meanwhile, or has adopted: then that process
    // reports its corrections.
    const bytes = await readFile(join(folder, name)).catch(() => Buffer.alloc(0))
    for (let at = bytes.indexOf(correctsName); at >= 0; at = bytes.indexOf(correctsName, at + tailBytes)) {
      if (found.length >= correctionsMax) return found
      const correction = correctionIn(bytes.toString('utf8', bytes.lastIndexOf(subjectName, at), at + tailBytes))
      if (correction !== undefined) found.push(correction)
    }
  }
  return found
}

/** Undefined for what a damaged disk made of one. */
function correctionIn(text: string): WrittenCorrection | undefined {
  const [, subject = '', id = ''] = pattern.exec(text) ?? []
  const [, root] = rootPattern.exec(text) ?? []
  try {
    return { subject: String(JSON.parse(subject)), root: root && String(JSON.parse(root)), id }
  } catch {
    return undefined
  }
}
