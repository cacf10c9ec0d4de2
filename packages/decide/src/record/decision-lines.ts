import type { Logger } from '@weir/runtime/logger.ts'
import type { CoalescedRecord, DecisionLog } from '../ports.ts'

/** Which records are lines of the log. */
type LoggedDecisions = 'denied' | 'sampled' | 'all'

/** More lines a second are for Kafka: each costs this thread, and more where it is shipped to. */
const linesPerSecondMax = 1_000
/** `sampled` takes one of so many, by the id: every process takes the same ones. */
const sampledOneOf = 100

/** Where the id of a record stands in it: behind `{"v":1,"id":"`. Its last 24 bits are random. */
const idEnd = 13 + 36
const sampleDigits = 6

const isLogged: Readonly<Record<LoggedDecisions, (record: string) => boolean>> = {
  // Quotes within a text are escaped, so that no name can be taken for this field.
  denied: (record) => record.includes('"outcome":"deny"'),
  sampled: (record) => Number.parseInt(record.slice(idEnd - sampleDigits, idEnd), 16) % sampledOneOf === 0,
  all: () => true,
}

/** A record of many decisions is a line once its second is over: then it has its count. */
interface OpenLine {
  readonly before: string
  readonly after: () => string
  count: number
}

/**
 * Writes a line for every record that a log accepts, with the record's fields but those of the journal (`journal`,
 * `seq`): at most 1,000 a second, and a line after it says how many were left out.
 */
export function createDecisionLines(
  inner: DecisionLog,
  which: LoggedDecisions,
  { log, dropped }: { readonly log: Logger; readonly dropped: () => number },
) {
  const isWanted = isLogged[which]
  let open: OpenLine[] = []
  /** Those of the second before. */
  let ending: OpenLine[] = []
  let lines = 0
  /** Since the start, so that a line which is dropped itself takes no count with it. */
  let leftOut = 0
  let said = 0

  function write(openLine: string): void {
    lines += 1
    if (lines > linesPerSecondMax) leftOut += 1
    else log.info(JSON.parse(`${openLine}}`), 'decision')
  }

  /** A record is added to for a second at most, which may have begun anywhere in this one. */
  function endSecond(): void {
    const missing = leftOut + dropped()
    if (missing > said) log.warn({ leftOut: missing }, 'decisions left out of the log since the start')
    said = missing
    lines = 0
    const ended = ending
    ending = open
    open = []
    for (const { before, after, count } of ended) if (count > 0) write(`${before}${count}${after()}`)
  }
  const timer = setInterval(endSecond, 1_000).unref()

  return {
    append(key: string, openLine: string, isReserved?: boolean): boolean {
      const isAccepted = inner.append(key, openLine, isReserved)
      if (isAccepted && isWanted(openLine)) write(openLine)
      return isAccepted
    },
    openCoalesced(key: string, before: string, after: string, latest?: () => string): CoalescedRecord | undefined {
      const record = inner.openCoalesced(key, before, after, latest)
      if (record === undefined || !isWanted(before + after)) return record
      const line: OpenLine = { before, after: latest ?? (() => after), count: 0 }
      open.push(line)
      return {
        ...record,
        add(count = 1) {
          const isCounted = record.add(count)
          if (isCounted) line.count += count
          return isCounted
        },
      }
    },
    writtenInTime: () => inner.writtenInTime(),
    finallyWritten: () => inner.finallyWritten(),
    /** Writes what is still being counted. */
    close(): void {
      clearInterval(timer)
      endSecond()
      endSecond()
    },
  }
}
