import { closeSync, fstatSync, mkdirSync, openSync, readSync, writeFileSync } from 'node:fs'
import { inProject } from '@weir/cli/project.ts'

interface ServerLog {
  readonly name: string
  /** The end of what it has written so far. */
  readonly read: () => string
  /** That, of a server which is gone. */
  kept?: string
  /** What was reported last: a log that has not grown since says nothing about another failure. */
  reported?: string
}

/** Enough to find the cause of a failure, and little to keep for each server of a test. */
const keptBytes = 65_536
const printedLines = 15

/** In the order of the starts. */
const logs = new Set<ServerLog>()

/** The end of a file; a log that was removed is empty. */
export function endOfFile(path: string): string {
  try {
    const file = openSync(path, 'r')
    const { size } = fstatSync(file)
    const end = Buffer.alloc(Math.min(size, keptBytes))
    readSync(file, end, 0, end.length, size - end.length)
    closeSync(file)
    return end.toString()
  } catch {
    return ''
  }
}

/**
 * Keeps what a server or a service writes for the report of a failed test. Call what it returns before the log is
 * removed.
 */
export function keepLog(name: string, read: () => string): () => void {
  const log: ServerLog = { name, read: () => read().slice(-keptBytes) }
  logs.add(log)
  return () => {
    log.kept = log.read()
  }
}

/** Forgets the servers that have ended: what they wrote belongs to the test that ended them. */
export function forgetEnded(): void {
  for (const log of logs) if (log.kept !== undefined) logs.delete(log)
}

/** Writes each log to a file that stays, and returns the files' paths with the last lines. `test` names the folder. */
export function reportLogs(test: string): string {
  const folder = inProject('.weir', 'tests', 'logs', test.replaceAll(/[^\w.-]+/g, '-').slice(0, 120))
  const reports = [...logs].flatMap((log, at) => {
    const text = (log.kept ?? log.read()).trimEnd()
    if (text === '' || text === log.reported) return []
    log.reported = text
    const path = `${folder}/${at}-${log.name}.log`
    mkdirSync(folder, { recursive: true })
    writeFileSync(path, `${text}\n`)
    return [`${path}:\n${text.split('\n').slice(-printedLines).join('\n')}\n`]
  })
  return reports.join('\n')
}
